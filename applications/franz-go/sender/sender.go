// A copy with franz-go without transactions: one record after the other, with an idempotent producer.
//
// A record that was not acknowledged within 1.5 s is given up, and the next one is sent.
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
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Getenv("BOOTSTRAP"), ",")...),
		kgo.ConsumerGroup(os.Getenv("GROUP")),
		kgo.ConsumeTopics(os.Getenv("SOURCE")),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.SessionTimeout(6*time.Second),
		kgo.DisableAutoCommit(),
		kgo.DefaultProduceTopic(os.Getenv("TARGET")),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProduceRequestTimeout(time.Second),
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer client.Close()
	for ctx.Err() == nil {
		fetches := client.PollRecords(ctx, 20)
		fetches.EachRecord(func(record *kgo.Record) {
			within, done := context.WithTimeout(ctx, 1500*time.Millisecond)
			defer done()
			copied := &kgo.Record{Partition: record.Partition, Key: record.Key, Value: record.Value}
			if err := client.ProduceSync(within, copied).FirstErr(); err != nil {
				fmt.Fprintln(os.Stderr, "given up:", err)
			}
		})
		if err := client.CommitUncommittedOffsets(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "not committed:", err)
		}
	}
}
