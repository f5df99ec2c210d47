// Command web has a page that answers at once, and /slow, which answers after ANSWER_SECONDS.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

func main() {
	seconds, err := strconv.Atoi(os.Getenv("ANSWER_SECONDS"))
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) { fmt.Fprintln(answer, "done") })
	http.HandleFunc("/slow", func(answer http.ResponseWriter, _ *http.Request) {
		time.Sleep(time.Duration(seconds) * time.Second)
		fmt.Fprintln(answer, "done")
	})
	log.Fatal(http.ListenAndServe(":8080", nil))
}
