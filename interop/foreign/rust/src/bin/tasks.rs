//! Tasks of the official Rust SDK over stdio: `tasks client` uses a server of ours, `tasks server` is used by our client.

use std::{collections::BTreeMap, io::Write, time::Duration};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceError, ServiceExt,
    model::*,
    service::{ClientLifecycleMode, ClientServiceExt, Peer, RequestContext, RoleClient},
    task_manager::{TaskExit, TaskManager, TaskOptions},
    transport::stdio,
};
use serde_json::{Value, from_value, json};

fn text(words: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(words)])
}

fn who(message: &str) -> InputRequest {
    let params = json!({
        "mode": "form",
        "message": message,
        "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } }
    });
    InputRequest::Elicitation(ElicitRequest::new(from_value(params).unwrap()))
}

#[derive(Clone)]
struct Server {
    tasks: TaskManager,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tasks();
        ServerConfig::new(capabilities.build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let options = TaskOptions::new().with_poll_interval_ms(20);
        let task = match request.name.as_ref() {
            "ask" => self.tasks.spawn(options, |context| {
                Box::pin(async move {
                    context.set_status_message("asking");
                    let first = context.request_input("first", who("First?"));
                    let last = context.request_input("last", who("Last?"));
                    let (first, last) = tokio::join!(first, last);
                    let name = |answer: Value| answer["content"]["name"].as_str().map(str::to_owned);
                    let names = [name(first?), name(last?)].map(Option::unwrap_or_default);
                    Ok(text(&names.join(" ")))
                })
            }),
            "wait" => self.tasks.spawn(options, |context| {
                Box::pin(async move {
                    context.cancelled().await;
                    Err(TaskExit::Cancelled)
                })
            }),
            "wrong" => self.tasks.spawn(options, |_| {
                Box::pin(async { Ok(CallToolResult::error(vec![ContentBlock::text("no")])) })
            }),
            _ => self.tasks.spawn(options, |_| {
                let error = ErrorData::new(ErrorCode(-32042), "Out of order", None);
                Box::pin(async { Err(TaskExit::Error(error)) })
            }),
        };
        Ok(CallToolResponse::Task(CreateTaskResult::new(task)))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }
}

/// The SDK takes an empty result that has `_meta`, as our server sends it, for the result of a tool.
fn acknowledged(response: Result<(), ServiceError>) {
    match response {
        Ok(()) | Err(ServiceError::UnexpectedResponse) => {}
        Err(error) => panic!("{error}"),
    }
}

/// Drives the task of a tool to its end, and answers each question with its message.
async fn drive(peer: &Peer<RoleClient>, name: &'static str) -> Value {
    let response = peer.call_tool_once(CallToolRequestParams::new(name)).await.unwrap();
    let CallToolResponse::Task(created) = response else {
        return json!({ "plain": format!("{response:?}").contains("plain") });
    };
    let id = created.task.task_id.clone();
    if name == "wait" {
        acknowledged(peer.cancel_task(CancelTaskParams::new(id.clone())).await);
    }
    loop {
        let pause = created.task.poll_interval_ms.unwrap_or(50);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let task = peer.get_task(GetTaskParams::new(id.clone())).await.unwrap().task;
        match task.payload {
            TaskPayload::Working => {}
            TaskPayload::InputRequired { input_requests } => {
                let Value::Object(requests) = json!(input_requests) else { panic!() };
                // One of them, as a part of the answers.
                let (key, request) = requests.iter().next().unwrap();
                let message = request["params"]["message"].as_str().unwrap();
                let content = json!({ "name": message.trim_end_matches('?') });
                let answer = json!({ key: { "action": "accept", "content": content } });
                let responses = from_value(answer).unwrap();
                acknowledged(peer.update_task(UpdateTaskParams::new(id.clone(), responses)).await);
            }
            TaskPayload::Completed { result } => return json!(result),
            TaskPayload::Failed { error } => return json!({ "error": error }),
            _ => return json!("cancelled"),
        }
    }
}

async fn client() {
    let extensions = BTreeMap::from([(
        "io.modelcontextprotocol/tasks".to_string(),
        serde_json::Map::new(),
    )]);
    let capabilities = json!({ "elicitation": { "form": {} }, "extensions": extensions });
    let config = ClientConfig::new(
        from_value(capabilities).unwrap(),
        Implementation::new("rust", "1.0.0"),
    );
    let lifecycle = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    let client = config.serve_with_lifecycle(stdio(), lifecycle).await.unwrap();
    for name in ["plain", "slow", "ask", "wait", "fail", "wrong"] {
        let outcome = drive(client.peer(), name).await;
        eprintln!("{}", json!({ "tool": name, "outcome": outcome }));
    }
    let unknown = client.peer().get_task(GetTaskParams::new("unknown")).await;
    let code = match unknown {
        Err(ServiceError::McpError(error)) => error.code.0,
        _ => 0,
    };
    eprintln!("{}", json!({ "tool": "unknown", "outcome": code }));
    client.cancel().await.unwrap();
    // A pending read of stdin would keep the process alive.
    std::process::exit(0)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if let Ok(path) = std::env::var("INTEROP_PIDS") {
        let file = std::fs::OpenOptions::new().append(true).open(path);
        writeln!(file.unwrap(), "{}", std::process::id()).unwrap();
    }
    if std::env::args().any(|argument| argument == "client") {
        return client().await;
    }
    let tasks = TaskManager::new();
    let service = Server { tasks }.serve(stdio()).await.unwrap();
    service.waiting().await.unwrap();
}
