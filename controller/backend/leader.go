package backend

import (
	"context"
	"fmt"
	"net/http"

	"github.com/skalds-go/skalds/controller/api"
	"github.com/skalds-go/skalds/pkg/client"
	"github.com/skalds-go/skalds/pkg/store"
)

// ask returns what only the leader knows: by here if this controller leads, else by there, of the controller that does.
// If that one cannot be asked, the error is an [*api.NoLeaderError]. An answer that there is no such thing is given as
// it is.
func ask[T any](ctx context.Context, b *Backend, here func(context.Context, *Leadership) (T, error),
	there func(*client.Client, context.Context) (T, error),
) (T, error) {
	if l := b.deps.Leading(); l != nil {
		return here(ctx, l)
	}
	var none T
	doc, err := b.deps.Store.Leader(ctx)
	if err != nil {
		return none, fmt.Errorf("read the leader's document: %w", err)
	}
	unknown := &api.NoLeaderError{Leader: leaderOf(doc)}
	switch doc.Holder {
	case "":
		return none, unknown
	case b.deps.ID:
		unknown.Reason = "it is this controller, which is beginning or ending to lead"
		return none, unknown
	}
	peer, err := client.New(client.Config{Server: doc.Address, Token: string(b.deps.Config.APIToken), HTTP: b.peers})
	if err == nil {
		var answer T
		if answer, err = there(peer, ctx); err == nil || client.IsStatus(err, http.StatusNotFound) {
			return answer, err
		}
	}
	unknown.Reason = err.Error()
	return none, unknown
}

func leaderOf(doc store.Leader) client.Leader {
	return client.Leader{Holder: doc.Holder, Address: doc.Address, Term: doc.Term}
}
