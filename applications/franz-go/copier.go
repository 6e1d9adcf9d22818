// A copy with franz-go: a consumer group and transactions (GroupTransactSession).
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(strings.Split(os.Getenv("BOOTSTRAP"), ",")...),
		kgo.ConsumerGroup(os.Getenv("GROUP")),
		kgo.ConsumeTopics(os.Getenv("SOURCE")),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.SessionTimeout(6*time.Second),
		kgo.HeartbeatInterval(time.Second),
		kgo.TransactionalID(os.Getenv("TRANSACTIONAL_ID")),
		kgo.TransactionTimeout(6*time.Second),
		kgo.DefaultProduceTopic(os.Getenv("TARGET")),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		fail(err)
	}
	defer session.Close()
	for ctx.Err() == nil {
		fetches := session.PollRecords(ctx, 200)
		if fetches.NumRecords() == 0 {
			continue
		}
		if err := session.Begin(); err != nil {
			fail(err)
		}
		fetches.EachRecord(func(record *kgo.Record) {
			copied := &kgo.Record{Partition: record.Partition, Key: record.Key, Value: record.Value}
			session.Produce(ctx, copied, nil) // the session aborts when it fails
		})
		// An error of a transaction that was not committed: what it read is polled again.
		if _, err := session.End(context.Background(), kgo.TryCommit); err != nil {
			fail(err)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
