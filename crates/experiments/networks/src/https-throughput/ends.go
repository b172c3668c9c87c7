// Both ends of a transfer by Go's net/http, used as in its documentation.
//
//	ends serve [CERTIFICATE KEY]   prints the address at which it serves /bytes/N, and ends when its input ends
//	ends get [CERTIFICATE]         gets all URLs of an input line at once, and prints one line with the results
//
// Go 1.19, the version of Debian 12, can build this program.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		fail(serve(os.Args[2:]))
	} else {
		fail(get(os.Args[2:]))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(files []string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(answer)}
	// HTTP/1.1 only.
	server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	server.ErrorLog = log.New(io.Discard, "", 0)
	server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13}
	go func() {
		if len(files) == 2 {
			fail(server.ServeTLS(listener, files[0], files[1]))
		} else {
			fail(server.Serve(listener))
		}
	}()
	fmt.Println(listener.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

var piece = make([]byte, 64*1024)

func answer(w http.ResponseWriter, r *http.Request) {
	bytes, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/bytes/"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(bytes))
	for bytes > 0 {
		next := piece
		if bytes < len(next) {
			next = next[:bytes]
		}
		count, err := w.Write(next)
		if err != nil {
			return
		}
		bytes -= count
	}
}

func get(files []string) error {
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	if len(files) == 1 {
		pem, err := os.ReadFile(files[0])
		if err != nil {
			return err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return errors.New("there is no certificate in the file")
		}
	}
	// One connection per request, as in all other clients of this experiment.
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: config, DisableKeepAlives: true, DisableCompression: true,
	}}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		urls := strings.Fields(lines.Text())
		all := make(chan string)
		for _, url := range urls {
			go func(url string) { all <- got(client, url) }(url)
		}
		var said []string
		for range urls {
			said = append(said, <-all)
		}
		fmt.Println(strings.Join(said, "; "))
	}
	return lines.Err()
}

func got(client *http.Client, url string) string {
	response, err := client.Get(url)
	if err != nil {
		return "error: " + err.Error()
	}
	defer response.Body.Close()
	bytes, err := io.Copy(io.Discard, response.Body)
	if err != nil {
		return fmt.Sprintf("error: after %d bytes: %v", bytes, err)
	}
	cipher := "-"
	if response.TLS != nil {
		cipher = tls.CipherSuiteName(response.TLS.CipherSuite)
	}
	return fmt.Sprintf("%d %d %s %s", response.StatusCode, bytes, response.Proto, cipher)
}
