package main

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// The parts of SPDX 2.3 (https://spdx.github.io/spdx-spec/v2.3/) that describe a
// program and the modules it was linked from.
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		DataLicense   string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Creation      spdxCreation       `json:"creationInfo"`
		Describes     []string           `json:"documentDescribes"`
		Packages      []spdxPackage      `json:"packages"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID               string         `json:"SPDXID"`
		Name             string         `json:"name"`
		Version          string         `json:"versionInfo,omitempty"`
		FileName         string         `json:"packageFileName,omitempty"`
		Purpose          string         `json:"primaryPackagePurpose,omitempty"`
		Supplier         string         `json:"supplier"`
		Download         string         `json:"downloadLocation"`
		FilesAnalyzed    bool           `json:"filesAnalyzed"`
		LicenseConcluded string         `json:"licenseConcluded"`
		LicenseDeclared  string         `json:"licenseDeclared"`
		Copyright        string         `json:"copyrightText"`
		Comment          string         `json:"comment,omitempty"`
		Checksums        []spdxChecksum `json:"checksums,omitempty"`
		References       []spdxRef      `json:"externalRefs,omitempty"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxRef struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

const unknown = "NOASSERTION"

// sbom writes what a binary consists of, as the binary itself says.
func (r *release) sbom(t target) error {
	name := r.binary(t)
	info, err := buildinfo.ReadFile(name)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	when, err := stamp(context.Background(), r.root)
	if err != nil {
		return err
	}
	doc := describe(info, data, r.version, t)
	doc.Creation.Created = when.Format(time.RFC3339)
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, r.name(t)+".spdx.json"), append(text, '\n'), 0o644)
}

// describe makes the document of a program with its bytes. Its namespace is made
// of the bytes, as it must be unique, and not made anew for the same ones.
func describe(info *debug.BuildInfo, data []byte, version string, t target) *spdxDocument {
	sum := sha256.Sum256(data)
	sum1 := sha1.Sum(data) // which SPDX wants of files in packages; nothing here trusts it
	name := fmt.Sprintf("aegis_%s_%s", version, t)
	main := spdxPackage{
		ID: "SPDXRef-aegis", Name: "aegis", Version: version, FileName: name, Purpose: "APPLICATION",
		Supplier: unknown, Download: unknown, LicenseConcluded: "MIT", LicenseDeclared: "MIT", Copyright: unknown,
		Checksums:  []spdxChecksum{{"SHA256", hex.EncodeToString(sum[:])}, {"SHA1", hex.EncodeToString(sum1[:])}},
		References: []spdxRef{{"PACKAGE-MANAGER", "purl", "pkg:generic/aegis@" + version}},
	}
	doc := &spdxDocument{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name,
		Namespace: "https://spdx.org/spdxdocs/" + name + "-" + hex.EncodeToString(sum[:16]),
		Creation:  spdxCreation{Creators: []string{"Tool: aegis-release"}},
		Describes: []string{main.ID},
		Packages:  []spdxPackage{main},
		Relationships: []spdxRelationship{
			{"SPDXRef-DOCUMENT", "DESCRIBES", main.ID},
		},
	}
	doc.add(main.ID, spdxPackage{
		ID: "SPDXRef-go", Name: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go"), Supplier: unknown, Download: "https://go.dev/dl/",
		LicenseConcluded: "BSD-3-Clause", LicenseDeclared: "BSD-3-Clause", Copyright: unknown,
		References: []spdxRef{{"PACKAGE-MANAGER", "purl", "pkg:golang/stdlib@" + strings.TrimPrefix(info.GoVersion, "go")}},
	})
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		doc.add(main.ID, spdxPackage{
			ID: "SPDXRef-" + identifier(m.Path+"-"+m.Version), Name: m.Path, Version: m.Version, Supplier: unknown,
			Download: unknown, LicenseConcluded: unknown, LicenseDeclared: unknown, Copyright: unknown,
			Comment:    "Go module checksum " + m.Sum,
			References: []spdxRef{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m.Path + "@" + m.Version}},
		})
	}
	return doc
}

func (d *spdxDocument) add(of string, p spdxPackage) {
	d.Packages = append(d.Packages, p)
	d.Relationships = append(d.Relationships, spdxRelationship{of, "CONTAINS", p.ID})
}

// identifier makes what SPDX allows in an identifier: letters, digits, . and -.
func identifier(s string) string { return notIdentifier.ReplaceAllString(s, "-") }

var notIdentifier = regexp.MustCompile(`[^A-Za-z0-9.-]+`)
