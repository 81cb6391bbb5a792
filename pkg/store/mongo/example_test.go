package mongo_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skalds-go/skalds/pkg/store"
	"github.com/skalds-go/skalds/pkg/store/mongo"
)

func ExampleOpen() { //nolint:testableexamples // it needs a server
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := mongo.Open(ctx, "mongodb://127.0.0.1:27017", "skalds")
	if errors.Is(err, store.ErrUnavailable) {
		fmt.Println("not there yet, worth another try:", err)
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = s.Close(ctx) }()
	counts, err := s.Counts(ctx)
	fmt.Println(counts, err)
}
