// A payment service that completes its own record (docs/sql-face.md).
//
//	payments serve HOST:PORT        behind a gateway: POST /payments {"amount": 1250}
//	payments pay SCOPE KEY AMOUNT   without one, from the command line
//
// DATABASE_URL: the database of the gateway's store, with the table of payments.sql.
// DIE_AFTER_COMMIT=1: ends the process after its first commit, before it answers.
package main

import (
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/lib/pq"
)

type fields = [][2]string
type attempt struct{ operation, fence, token string }
type answer struct {
	status  int
	headers fields
	body    []byte
}

var db, malformed = sql.Open("postgres", os.Getenv("DATABASE_URL"))
var jsonType = [2]string{"Content-Type", "application/json"}

func refusal(status int, why string, fields ...[2]string) answer {
	return answer{status, append(fields, jsonType), []byte(fmt.Sprintf(`{"error": %q}`, why))}
}

// Ends a command, and in a handler the client's connection: the gateway then reads the record.
func must(err error) {
	if err != nil {
		log.Panic(err)
	}
}

// Books a payment and stores its answer, both or neither.
func pay(a attempt, amount int64) answer {
	random := make([]byte, 16)
	_, err := rand.Read(random)
	must(err)
	id := fmt.Sprintf("pay_%x", random)
	headers := fields{jsonType, {"Location", "/payments/" + id}}
	stored, _ := json.Marshal(headers)
	body := []byte(fmt.Sprintf(`{"id": %q, "amount": %d}`, id, amount))

	tx, err := db.Begin()
	if err == nil {
		defer tx.Rollback() // Does nothing after a commit.
		_, err = tx.Exec("INSERT INTO payments (id, amount) VALUES ($1, $2)", id, amount)
	}
	if err == nil {
		_, err = tx.Exec("SELECT idem.complete($1, $2, $3, $4, $5, $6)",
			a.operation, a.fence, a.token, 201, string(stored), body)
	}
	if known := new(pq.Error); errors.As(err, &known) && (known.Code == "IDM01" || known.Code == "IDM02") {
		return refusal(409, "too late: the record has another attempt, or its answer") // Stale; settled.
	} else if err != nil {
		// No commit was sent, and the rows roll back: this payment was never made.
		log.Print(err)
		return refusal(503, "not booked, try again", [2]string{"Idem-Outcome", "not-executed"})
	}
	must(tx.Commit()) // After a failed commit only the record knows the outcome: no answer of ours.
	if os.Getenv("DIE_AFTER_COMMIT") != "" {
		os.Exit(9)
	}
	return answer{201, headers, body}
}

func serve(w http.ResponseWriter, r *http.Request) {
	a := attempt{r.Header.Get("Idem-Operation"), r.Header.Get("Idem-Fence"), r.Header.Get("Idem-Attempt")}
	var asked struct{ Amount int64 }
	reply := refusal(422, "amount is a positive integer")
	if r.Method != "POST" || r.URL.Path != "/payments" {
		reply = refusal(404, "there is only /payments")
	} else if a.operation == "" || a.fence == "" || a.token == "" {
		reply = refusal(400, "payments come through the gateway, with an Idempotency-Key")
	} else if json.NewDecoder(r.Body).Decode(&asked) == nil && asked.Amount > 0 {
		reply = pay(a, asked.Amount)
	}
	for _, field := range reply.headers {
		w.Header().Set(field[0], field[1])
	}
	w.WriteHeader(reply.status)
	w.Write(reply.body)
}

func payDirectly(scope, key, text string) {
	var amount int64
	must(json.Unmarshal([]byte(text), &amount))
	// The work is one transaction of this database, and only its completion makes it real. So an attempt
	// that crashed before it did nothing (dispatched => false), and the key runs again after its lease.
	var outcome string
	var operation, fence, token []byte
	var made answer
	must(db.QueryRow(`SELECT outcome, operation, fence, attempt, coalesce(response_status, 0), response_body
		FROM idem.reserve($1, 'create-payment', $2, $3, dispatched => false)`,
		scope, key, []byte("amount="+text)).Scan(&outcome, &operation, &fence, &token, &made.status, &made.body))
	if outcome == "execute" {
		made = pay(attempt{string(operation), string(fence), string(token)}, amount)
	} else if outcome != "replay" {
		log.Fatal(outcome)
	}
	fmt.Println(made.status, string(made.body))
	if made.status >= 400 {
		os.Exit(1)
	}
}

func main() {
	must(malformed)
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		listener, err := net.Listen("tcp", os.Args[2])
		must(err)
		fmt.Printf("listening address=%s role=payments\n", listener.Addr())
		must(http.Serve(listener, http.HandlerFunc(serve)))
	} else if len(os.Args) == 5 && os.Args[1] == "pay" {
		payDirectly(os.Args[2], os.Args[3], os.Args[4])
	} else {
		log.Fatal("usage: payments serve HOST:PORT | pay SCOPE KEY AMOUNT")
	}
}
