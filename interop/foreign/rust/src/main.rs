//! The official Rust SDK over Streamable HTTP, for stateless and handshake revisions.

use std::{borrow::Cow, io::Read, io::Write, sync::Arc};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::*,
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::{Value, from_value, json};

#[derive(Clone)]
struct Server;

fn parse<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn text(words: &str) -> Result<CallToolResponse, ErrorData> {
    Ok(CallToolResult::success(vec![ContentBlock::text(words)]).into())
}

fn who() -> Result<ElicitRequestParams, ErrorData> {
    Ok(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: "Who?".into(),
        requested_schema: parse(json!({
            "type": "object",
            "properties": { "name": { "type": "string" } },
            "required": ["name"]
        }))?,
    })
}

fn accepted(answer: &Value) -> Result<CallToolResponse, ErrorData> {
    let name = answer["content"]["name"].as_str().unwrap_or_default();
    text(&format!("accept {name}"))
}

/// Asks by a result, or in a handshake revision by a request.
async fn ask(
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if context.protocol_version() != Some(ProtocolVersion::V_2026_07_28) {
        let answer = context.peer.create_elicitation(who()?).await;
        let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        return accepted(&json!(answer));
    }
    if let Some(answer) = request.input_responses.as_ref().and_then(|all| all.get("who")) {
        return accepted(answer);
    }
    let mut requests = InputRequests::new();
    let request = InputRequest::Elicitation(ElicitRequest::new(who()?));
    requests.insert("who".to_string(), request);
    Ok(InputRequiredResult::new(Some(requests), None).into())
}

impl ServerHandler for Server {
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&[ProtocolVersion::V_2026_07_28, ProtocolVersion::V_2025_11_25])
    }

    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("rust", "1.0.0"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = ["ask", "echo", "fail", "wait", "work"]
            .map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }));
        parse(json!({ "tools": tools }))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match request.name.as_ref() {
            "echo" => {
                let arguments = request.arguments.unwrap_or_default();
                text(arguments["message"].as_str().unwrap_or_default())
            }
            "fail" => Ok(CallToolResult::error(vec![ContentBlock::text("As planned.")]).into()),
            "wait" => {
                eprintln!("waiting");
                context.ct.cancelled().await;
                eprintln!("cancelled");
                text("")
            }
            "work" => {
                if let Some(token) = context.meta.get_progress_token() {
                    for step in 1..=3 {
                        let progress = ProgressNotificationParam::new(token.clone(), step as f64)
                            .with_total(3.0);
                        context.peer.notify_progress(progress).await.ok();
                    }
                }
                text("done")
            }
            "ask" => ask(request, context).await,
            _ => Err(ErrorData::invalid_params("unknown tool", None)),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        parse(json!({ "resources": [{ "uri": "note://1", "name": "note" }] }))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = json!({ "contents": [{ "uri": request.uri, "text": "a note" }] });
        Ok(parse::<ReadResourceResult>(contents)?.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let arguments = json!([{ "name": "name", "required": true }]);
        parse(json!({ "prompts": [{ "name": "greet", "arguments": arguments }] }))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let words = format!("Hello {}", arguments["name"].as_str().unwrap_or_default());
        let content = json!({ "type": "text", "text": words });
        let messages = json!([{ "role": "user", "content": content }]);
        Ok(parse::<GetPromptResult>(json!({ "messages": messages }))?.into())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if let Ok(path) = std::env::var("INTEROP_PIDS") {
        let file = std::fs::OpenOptions::new().append(true).open(path);
        writeln!(file.unwrap(), "{}", std::process::id()).unwrap();
    }
    std::thread::spawn(|| {
        std::io::stdin().read_to_end(&mut Vec::new()).ok();
        std::process::exit(0)
    });
    let service = StreamableHttpService::new(
        || Ok(Server),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default().with_legacy_session_mode(true),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    eprintln!("serving http://{}/mcp", listener.local_addr().unwrap());
    let router = axum::Router::new().nest_service("/mcp", service);
    axum::serve(listener, router).await.unwrap();
}
