// A plain collector, for comparison: POST a JSON object with "events", one record an event keyed by view, 200 after all acks.
//
// BOOTSTRAP and PORT are its settings. One core is what the benchmark gives every server (GOMAXPROCS=1).
package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const bodyBytesMax = 1 << 20

type head struct {
	Customer string `json:"ake"`
	View     string `json:"xid"`
}

type batch struct {
	Events []json.RawMessage `json:"events"`
}

func main() {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(os.Getenv("BOOTSTRAP")),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(5*time.Millisecond),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
		kgo.DefaultProduceTopic(os.Getenv("TOPIC")),
	)
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytesMax))
		var given batch
		if err != nil || json.Unmarshal(body, &given) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		records := make([]*kgo.Record, 0, len(given.Events))
		for _, event := range given.Events {
			var of head
			if json.Unmarshal(event, &of) != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			records = append(records, &kgo.Record{Key: []byte(of.Customer + ":" + of.View), Value: event})
		}
		if client.ProduceSync(r.Context(), records...).FirstErr() != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Access-Control-Allow-Origin", "*")
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
