package main

import (
	"crypto/sha1"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// object is an object of SPDX 2.3 (https://spdx.github.io/spdx-spec/v2.3/), written with the
// names that the specification has: types of our own would say each of them twice.
type object map[string]any

// unknown is what SPDX wants where nothing is said; an empty field is not valid.
const unknown = "NOASSERTION"

// sbom writes what a binary consists of, as the binary itself says. The file go.mod
// would list modules that are only needed for tests.
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
	text, err := json.MarshalIndent(r.describe(info, data, t), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, r.name(t)+".spdx.json"), append(text, '\n'), 0o644)
}

// describe makes the document of a program with its bytes. Its namespace is made
// of the bytes, as it must be unique, and not made anew for the same ones.
func (r *release) describe(info *debug.BuildInfo, data []byte, t target) object {
	const document, program = "SPDXRef-DOCUMENT", "SPDXRef-aegis"
	sum := sha256.Sum256(data)
	sum1 := sha1.Sum(data) // which SPDX wants of files in packages; nothing here trusts it
	main := component(program, "aegis", r.version, "MIT", "pkg:generic/aegis@"+r.version)
	main["packageFileName"], main["primaryPackagePurpose"] = r.name(t), "APPLICATION"
	main["checksums"] = []object{
		{"algorithm": "SHA256", "checksumValue": hex.EncodeToString(sum[:])},
		{"algorithm": "SHA1", "checksumValue": hex.EncodeToString(sum1[:])},
	}
	stdlib := module("stdlib", strings.TrimPrefix(info.GoVersion, "go"), "BSD-3-Clause")
	stdlib["SPDXID"], stdlib["downloadLocation"] = "SPDXRef-go", "https://go.dev/dl/"
	packages := []object{main, stdlib}
	for _, m := range info.Deps {
		// What was linked is the replacement.
		if m.Replace != nil {
			m = m.Replace
		}
		p := module(m.Path, m.Version, unknown) // the binary names no licences
		p["comment"] = "Go module checksum " + m.Sum
		packages = append(packages, p)
	}
	relationships := []object{related(document, "DESCRIBES", program)}
	for _, p := range packages[1:] {
		relationships = append(relationships, related(program, "CONTAINS", p["SPDXID"]))
	}
	return object{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": document, "name": r.name(t),
		"documentNamespace": "https://spdx.org/spdxdocs/" + r.name(t) + "-" + hex.EncodeToString(sum[:16]),
		"creationInfo": object{
			"created": r.when.Format(time.RFC3339), "creators": []string{"Tool: aegis-release"},
		},
		"documentDescribes": []string{program},
		"packages":          packages,
		"relationships":     relationships,
	}
}

// module is one that a program was linked from.
func module(path, version, license string) object {
	return component("SPDXRef-"+identifier(path+"-"+version), path, version, license, "pkg:golang/"+path+"@"+version)
}

// component is a package of the document. Its fields are those that must be there, and the
// purl (https://github.com/package-url/purl-spec) by which scanners look vulnerabilities up.
func component(id, name, version, license, purl string) object {
	return object{
		"SPDXID": id, "name": name, "versionInfo": version, "supplier": unknown, "downloadLocation": unknown,
		"filesAnalyzed": false, "licenseConcluded": license, "licenseDeclared": license, "copyrightText": unknown,
		"externalRefs": []object{
			{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl},
		},
	}
}

func related(from, kind string, to any) object {
	return object{"spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to}
}

// identifier makes what SPDX allows in an identifier: letters, digits, . and -.
func identifier(s string) string { return notIdentifier.ReplaceAllString(s, "-") }

var notIdentifier = regexp.MustCompile(`[^A-Za-z0-9.-]+`)
