// Both ends of a transfer by Go's own net/http, used as its documentation does.
//
//	ends serve [CERTIFICATE KEY]   says where it serves /bytes/N, and ends with its input
//	ends get [CERTIFICATE]         gets all URLs of a line of its input at once, and says in a line what came
//
// Go 1.19, which Debian 12 has, builds it.
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
	// HTTP/1.1 alone.
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
	// A connection for each, as all other clients here have.
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
