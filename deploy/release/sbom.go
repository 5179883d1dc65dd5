package main

import (
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

// unknown is what SPDX wants where nothing is said; an empty field is not valid.
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
	doc := describe(info, data, r.version, t)
	doc.Creation.Created = r.when.Format(time.RFC3339)
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
	stdlib := component("stdlib", strings.TrimPrefix(info.GoVersion, "go"), "BSD-3-Clause")
	stdlib.ID, stdlib.Download = "SPDXRef-go", "https://go.dev/dl/"
	doc.add(main.ID, stdlib)
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		p := component(m.Path, m.Version, unknown) // the binary names no licences
		p.Comment = "Go module checksum " + m.Sum
		doc.add(main.ID, p)
	}
	return doc
}

// component is a module that a program was linked from.
func component(path, version, license string) spdxPackage {
	return spdxPackage{
		ID: "SPDXRef-" + identifier(path+"-"+version), Name: path, Version: version, Supplier: unknown,
		Download: unknown, LicenseConcluded: license, LicenseDeclared: license, Copyright: unknown,
		References: []spdxRef{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}},
	}
}

// add adds a package that another one contains.
func (d *spdxDocument) add(of string, p spdxPackage) {
	d.Packages = append(d.Packages, p)
	d.Relationships = append(d.Relationships, spdxRelationship{of, "CONTAINS", p.ID})
}

// identifier makes what SPDX allows in an identifier: letters, digits, . and -.
func identifier(s string) string { return notIdentifier.ReplaceAllString(s, "-") }

var notIdentifier = regexp.MustCompile(`[^A-Za-z0-9.-]+`)
