package confirm_test

import (
	"context"
	"fmt"
	"time"

	"aegis/config"
	"aegis/proxy"
	"aegis/proxy/kv"
	"aegis/proxy/policy/confirm"
)

// A call that the rules are about does not run before a person has permitted it.
func ExampleConfirm_Stage() {
	rules := config.Confirm{Tools: []string{"R3"}, TTL: config.Duration(time.Minute)}
	c, err := confirm.New(rules, confirm.Options{Store: kv.NewMemory(nil), Key: make([]byte, 32)})
	if err != nil {
		fmt.Println(err)
		return
	}
	gitea := proxy.HandlerFunc(func(context.Context, *proxy.Call) (*proxy.Result, error) { return &proxy.Result{}, nil })
	tool := &proxy.Tool{Name: "gitea_repository_delete", Title: "Delete a repository", Risk: proxy.R3}
	call := &proxy.Call{Tool: tool, Op: tool, Identity: &proxy.Identity{Login: "alice"}, CanAsk: true}
	_, err = c.Stage()(gitea).Handle(context.Background(), call)
	question := proxy.AsError(err).Question
	fmt.Println("to permit it, the person types", question.Retype)
	// Output:
	// to permit it, the person types gitea_repository_delete
}
