package setup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
)

// asker asks people in a terminal, line by line; a pipe will do as well. It reads lines
// and not keys: answers can be piped in, and a test is a string.
type asker struct {
	in    *bufio.Reader
	out   io.Writer
	quiet bool // take defaults, ask nothing
	tty   *os.File
	done  <-chan struct{} // closed when answers have no use any more
}

// question is one thing to know. Flags answer all of them, so that setup can run in a
// script.
type question struct {
	into *string // what the command line said, and then the answer
	flag string  // that answers it beforehand
	// variable of the environment answers it too. The flag may then name a file.
	variable string
	text     string
	preset   string // what an empty answer means
	secret   bool   // not shown while it is typed
	needed   bool   // an empty answer is no answer
	check    func(string) error
}

// tries bounds wrong answers to one question. Three are enough for a person, and a pipe
// gives the same wrong answer for ever.
const tries = 3

// answer asks several questions, one after the other.
func (a *asker) answer(questions ...question) (err error) {
	for _, q := range questions {
		if q.variable != "" {
			if *q.into, err = secretValue(q.flag, *q.into, q.variable); err != nil {
				return err
			}
		}
		if *q.into, err = a.ask(*q.into, q); err != nil {
			return err
		}
	}
	return nil
}

// ask returns the answer. given is what the command line said, used when it is
// not empty.
func (a *asker) ask(given string, q question) (string, error) {
	check := q.check
	if check == nil {
		check = func(string) error { return nil }
	}
	// A wrong flag ends the command and is not asked about: a script would wait.
	if given != "" {
		if err := check(given); err != nil {
			return "", misused(fmt.Errorf("--%s: %w", q.flag, err))
		}
		return given, nil
	}
	// The preset is ours, and is not checked: it is right.
	if a.quiet {
		if q.preset == "" && q.needed {
			return "", misused(fmt.Errorf("--%s: required with --yes", q.flag))
		}
		return q.preset, nil
	}
	// A pipe that answers wrongly would be asked for ever. What is wrong is said at
	// once, when the question is still in sight.
	for range tries {
		line, err := a.line(q)
		if err != nil {
			return "", err
		}
		switch {
		case line == "" && q.needed:
			fmt.Fprintln(a.out, "  An answer is needed.")
			continue
		case line == "":
			return "", nil
		}
		if err := check(line); err != nil {
			fmt.Fprintln(a.out, "  "+err.Error())
			continue
		}
		return line, nil
	}
	return "", fmt.Errorf("no usable answer in %d tries; give it as --%s", tries, q.flag)
}

// line asks once. A terminal shows a secret no more than it shows a password; where that
// cannot be switched off, it is shown rather than not asked.
func (a *asker) line(q question) (string, error) {
	fmt.Fprint(a.out, q.text)
	if q.preset != "" {
		fmt.Fprintf(a.out, " [%s]", q.preset)
	}
	fmt.Fprint(a.out, ": ")
	// The line break that ends the answer is not shown either, so it is printed.
	if q.secret && a.tty != nil {
		show, err := hideInput(a.tty)
		if err == nil {
			defer func() { show(); fmt.Fprintln(a.out) }()
		}
	}
	line, err := a.read()
	// A last line without its end is an answer all the same.
	if err != nil && line == "" {
		if !errors.Is(err, io.EOF) {
			return "", err
		}
		fmt.Fprintln(a.out)
		return "", fmt.Errorf("the input has ended; give the answer as --%s, or take defaults with --yes", q.flag)
	}
	if line = strings.TrimSpace(line); line == "" {
		line = q.preset
	}
	return line, nil
}

// read returns the next line, or an error when it has no use any more.
func (a *asker) read() (string, error) {
	type result struct {
		line string
		err  error
	}
	// It holds one result, so that the goroutine ends after ask has returned.
	got := make(chan result, 1)
	go func() { // a read from a terminal cannot be interrupted
		line, err := a.in.ReadString('\n')
		got <- result{line, err}
	}()
	select {
	case r := <-got:
		return r.line, r.err
	case <-a.done:
		return "", errors.New("interrupted; nothing was written")
	}
}

// oneOf checks for a word of a list.
func oneOf(words ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(words, s) {
			return errors.New("one of " + strings.Join(words, ", "))
		}
		return nil
	}
}

// WebAddress reads an http or https URL without query and credentials. A sub-path is
// allowed; credentials in an address would end up in logs.
func WebAddress(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "",
		u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("a whole address such as https://git.example.org")
	}
	return u, nil
}

func webAddress(s string) error {
	_, err := WebAddress(s)
	return err
}

// secretValue reads what a flag says: file:PATH, or the value itself. An empty flag
// stands for the environment variable. On a command line the value can be seen by every
// user of the machine and stays in the history of the shell, which is why there are two
// other ways.
func secretValue(flag, text, variable string) (string, error) {
	if text == "" {
		return os.Getenv(variable), nil
	}
	path, ok := strings.CutPrefix(text, "file:")
	if !ok {
		return text, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", misused(fmt.Errorf("--%s: %w", flag, err))
	}
	// Editors end files with a line break, which is not part of the secret.
	return strings.TrimSpace(string(data)), nil
}
