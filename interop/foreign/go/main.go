// The official Go SDK over Streamable HTTP: with sessions, or with the argument "stateless" without them; with "sse" over
// HTTP+SSE.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type none struct{}

type message struct {
	Message string `json:"message"`
}

func text(words string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: words}}}
}

func create() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "go", Version: "1.0.0"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in message) (*mcp.CallToolResult, any, error) {
		return text(in.Message), nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "fail"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		return nil, nil, fmt.Errorf("As planned.")
	})
	mcp.AddTool(server, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "waiting")
		<-ctx.Done()
		fmt.Fprintln(os.Stderr, "cancelled")
		return nil, nil, ctx.Err()
	})
	mcp.AddTool(server, &mcp.Tool{Name: "work"}, func(ctx context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		for step := 1; step <= 3; step++ {
			params := &mcp.ProgressNotificationParams{
				ProgressToken: req.Params.GetProgressToken(), Progress: float64(step), Total: 3,
			}
			if err := req.Session.NotifyProgress(ctx, params); err != nil {
				return nil, nil, err
			}
		}
		return text("done"), nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "ask"}, ask)
	mcp.AddTool(server, &mcp.Tool{Name: "touch"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		err := server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "note://1"})
		return text("touched"), nil, err
	})
	server.AddResource(&mcp.Resource{Name: "note", URI: "note://1"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		contents := []*mcp.ResourceContents{{URI: "note://1", Text: "a note"}}
		return &mcp.ReadResourceResult{Contents: contents}, nil
	})
	arguments := []*mcp.PromptArgument{{Name: "name", Required: true}}
	server.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: arguments}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		content := &mcp.TextContent{Text: "Hello " + req.Params.Arguments["name"]}
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: content}}}, nil
	})
	return server
}

// The SDK asks clients of earlier revisions by a request, and calls the handler again.
func ask(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
	if answer, ok := req.Params.InputResponses["who"].(*mcp.ElicitResult); ok {
		return text(fmt.Sprintf("%s %v", answer.Action, answer.Content["name"])), nil, nil
	}
	schema := &jsonschema.Schema{
		Type:       "object",
		Properties: map[string]*jsonschema.Schema{"name": {Type: "string"}},
		Required:   []string{"name"},
	}
	who := &mcp.ElicitParams{Mode: "form", Message: "Who?", RequestedSchema: schema}
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"who": who}}, nil, nil
}

func main() {
	pids, err := os.OpenFile(os.Getenv("INTEROP_PIDS"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		fmt.Fprintln(pids, os.Getpid())
		pids.Close()
	}
	server := create()
	get := func(*http.Request) *mcp.Server { return server }
	kind := append(os.Args, "")[1]
	options := &mcp.StreamableHTTPOptions{Stateless: kind == "stateless"}
	var handler http.Handler = mcp.NewStreamableHTTPHandler(get, options)
	if kind == "sse" {
		handler = mcp.NewSSEHandler(get, nil)
	}
	listening, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Fprintf(os.Stderr, "serving http://%s/mcp\n", listening.Addr())
	panic(http.Serve(listening, handler))
}
