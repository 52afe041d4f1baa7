// refused_uploads.js by Go's net/http.
//
//	refused-uploads-go net/http URL BYTES TIMES [NAME=VALUE...]
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
)

func once(url string, body []byte, fields []string) string {
	request, err := http.NewRequest("POST", url, bytes.NewReader(body))
	if err != nil {
		return err.Error()
	}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, "=")
		request.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(request)
	if errors.Is(err, syscall.EPIPE) {
		return "EPIPE"
	}
	if errors.Is(err, syscall.ECONNRESET) {
		return "ECONNRESET"
	}
	if err != nil {
		return strings.ReplaceAll(err.Error(), " ", "_")
	}
	io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	return strconv.Itoa(answer.StatusCode)
}

func main() {
	size, _ := strconv.Atoi(os.Args[3])
	times, _ := strconv.Atoi(os.Args[4])
	body := bytes.Repeat([]byte("x"), size)
	outcomes := map[string]int{}
	for i := 0; i < times; i++ {
		outcomes[once(os.Args[2], body, os.Args[5:])]++
	}
	for outcome, count := range outcomes {
		fmt.Println(outcome, count)
	}
}
