// Package secure is the gateway's TLS: with clients, and with the servers behind it.
package secure

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Any is the name of servers whose certificates nobody here can verify.
const Any = "any"

// The names of the packed files: the CA of the run, and the gateway's certificate with its key.
const (
	authority   = "ca.pem"
	certificate = "server.pem"
	key         = "server.key"
)

// filesMax bounds what is unpacked; certificates and keys take a few KiB.
const filesMax = 1 << 20

// Versions are those that a setting may name.
var Versions = map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}

// VersionName is a version as nginx and HAProxy spell it.
func VersionName(version uint16) string {
	for name, known := range Versions {
		if known == version {
			return name
		}
	}
	return strings.ReplaceAll(tls.VersionName(version), " ", "v")
}

// Files are certificates and keys, by their names.
type Files map[string][]byte

// Unpack reads files that were packed for an environment variable: base64 of a tar.gz.
func Unpack(packed string) (Files, error) {
	zipped, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(packed)))
	if err != nil {
		return nil, err
	}
	files := Files{}
	archive := tar.NewReader(io.LimitReader(zipped, filesMax))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		var content bytes.Buffer
		if _, err := io.Copy(&content, archive); err != nil {
			return nil, err
		}
		files[strings.TrimPrefix(header.Name, "./")] = content.Bytes()
	}
}

// Server is the TLS of the traffic port.
func (f Files) Server(oldest, newest uint16, tickets bool) (*tls.Config, error) {
	own, err := tls.X509KeyPair(f[certificate], f[key])
	if err != nil {
		return nil, fmt.Errorf("its certificate: %w", err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{own}, MinVersion: oldest, MaxVersion: newest, SessionTicketsDisabled: !tickets,
	}, nil
}

// Client is the TLS with servers that have the name in their certificates; it keeps that many sessions to resume.
func (f Files) Client(name string, sessions int) (*tls.Config, error) {
	found := &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12}
	if sessions > 0 {
		found.ClientSessionCache = tls.NewLRUClientSessionCache(sessions)
	}
	if name == Any {
		// The certificate of a service of the user's own is not of the run's CA.
		found.ServerName, found.InsecureSkipVerify = "", true
		return found, nil
	}
	found.RootCAs = x509.NewCertPool()
	if !found.RootCAs.AppendCertsFromPEM(f[authority]) {
		return nil, errors.New("there is no certificate of the CA that signed those of the servers")
	}
	return found, nil
}
