package gate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"llmparity/internal/host/cache"
	"llmparity/internal/kit/fault"
)

// secure returns the configuration of TLS, and the names by which the server may be addressed. WebGPU and
// SharedArrayBuffer need a secure context, which on other devices needs TLS.
func (s *Server) secure(o Options, names []string) (*tls.Config, []string, error) {
	given := o.Certificate != "" || o.Key != ""
	var pair tls.Certificate
	var err error
	if given {
		pair, err = tls.LoadX509KeyPair(o.Certificate, o.Key)
	} else {
		pair, err = own(o.Cache, names)
	}
	if err != nil {
		return nil, nil, fault.Wrap(fault.Usage, err, "name both files with --certificate and --key", "the certificate")
	}
	if given { // it is valid for its own names
		names = slices.Concat(pair.Leaf.DNSNames, names)
		names = slices.DeleteFunc(names, func(name string) bool { return strings.Contains(name, "*") })
	}
	sum := sha256.Sum256(pair.Leaf.Raw)
	s.Fingerprint = strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":")
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, names, nil
}

const (
	validity = 90 * 24 * time.Hour
	renewal  = 7 * 24 * time.Hour // before it ends
)

// own returns a certificate that we made, which is kept so that a person accepts it only once.
func own(folder string, names []string) (tls.Certificate, error) {
	path := filepath.Join(folder, "page-certificate.pem")
	if pair, err := tls.LoadX509KeyPair(path, path); err == nil {
		covers := !slices.ContainsFunc(names, func(name string) bool { return pair.Leaf.VerifyHostname(name) != nil })
		if covers && time.Until(pair.Leaf.NotAfter) > renewal {
			return pair, nil
		}
	}
	text, err := made(names)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a certificate: %w", err)
	}
	if err = cache.MkdirAll(folder); err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(text, text)
}

// made makes a key and a certificate for it, which vouches for nothing but itself.
func made(names []string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	t := x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "llmparity page"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, name)
		}
	}
	certificate, err := x509.CreateCertificate(rand.Reader, &t, &t, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for kind, content := range map[string][]byte{"CERTIFICATE": certificate, "PRIVATE KEY": secret} {
		if err := pem.Encode(&b, &pem.Block{Type: kind, Bytes: content}); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
