#!/bin/bash
# Runs inside a throw-away machine with a real systemd, as root: installs, runs,
# upgrades and removes the package, and writes what was right to /check/result. The
# first thing that is wrong ends it.
exec >/check/log 2>&1
set -eu
trap 'echo "failed in line $LINENO: $BASH_COMMAND" >>/check/result; systemctl status aegis.service --no-pager -l || true; journalctl -b --no-pager -u aegis.service || true; systemctl poweroff' ERR
set -x
no() { if "$@"; then return 1; fi; } # "! command" would never end the script
ok() { echo "ok: $*" >>/check/result; }
# eventually COMMAND... waits until it succeeds; slow machines may take their time.
eventually() {
  local end=$((SECONDS + 240))
  until "$@"; do [ $SECONDS -lt "$end" ] || return 1; sleep 0.2; done
}
logged() { journalctl -b --no-pager -u aegis.service | grep -qi "$1"; }
show() { systemctl show aegis.service --value -p "$1"; }
get() { # ADDRESS PATH, without curl
  exec 9<>"/dev/tcp/${1%:*}/${1##*:}" || return 1
  printf 'GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n' "$2" >&9
  cat <&9; exec 9>&-
}
restarted() { [ "$(show NRestarts)" -ge 1 ] && aegis health; }
serves() { get "$1" / | grep -q "\"version\":\"$2\""; }
conf=/etc/aegis/aegis.yaml
dropin=/etc/systemd/system/aegis.service.d

# --- first installation
dpkg -i /check/first.deb
test "$(stat -c '%U:%G %a' $conf)" = "root:aegis 640"
test "$(stat -c '%U:%G %a' /etc/aegis)" = "root:aegis 750"
test "$(stat -c '%U:%G %a' /etc/aegis/credentials)" = "root:root 700"
test "$(getent passwd aegis | cut -d: -f7)" = /usr/sbin/nologin
aegis version | grep -qx 'aegis 1.0.0'
gzip -dc /usr/share/man/man1/aegis.1.gz | grep -q '^.TH AEGIS 1'
bash -n /usr/share/bash-completion/completions/aegis
no systemctl is-enabled --quiet aegis.service
no systemctl is-active --quiet aegis.service
ok "the package installs, with user, rights, manual page and completions, and starts nothing"

systemd-analyze verify --man=no aegis.service aegis.socket aegis-http.socket >/check/verify 2>&1
no grep aegis /check/verify
systemd-analyze security --threshold=15 --no-pager aegis.service | tail -1
ok "systemd-analyze: the units verify, and the exposure is 1.5 at most"

# --- a service without secrets does not start, and says why
no systemctl start aegis.service
eventually logged 'token: cannot read'
systemctl stop aegis.service
ok "without secrets it does not start, and says what is missing"

# --- first start
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' | install -m 600 /dev/stdin /etc/aegis/credentials/client_token
printf '%040d' 7 | install -m 600 /dev/stdin /etc/aegis/credentials/gitea_token
systemctl enable --now aegis.service
systemctl is-active --quiet aegis.service
eventually aegis health
find /var/lib/aegis -printf '%p %u %m\n' | sort >/check/before
aegis check
find /var/lib/aegis -printf '%p %u %m\n' | sort | cmp - /check/before # root left nothing behind
pid=$(show MainPID)
test "$(stat -c %U "/proc/$pid")" = aegis
grep -q '^CapEff:.0000000000000400$' "/proc/$pid/status"
grep -q '^Seccomp:.2$' "/proc/$pid/status"
grep -q '^NoNewPrivs:.1$' "/proc/$pid/status"
test "$(stat -c '%U %a' /var/lib/aegis)" = "aegis 700"
show StatusText | grep -q '^serving http'
ok "it starts hardened as aegis, with the credentials of LoadCredential"

# --- reload
sed -i 's/^data_dir/# reloaded\ndata_dir/' $conf
systemctl reload aegis.service
eventually logged "loaded anew"
test "$(show MainPID)" = "$pid"
cp $conf /check/good.yaml
echo 'nonsense: 1' >>$conf
no aegis check
systemctl reload aegis.service
systemctl is-active --quiet aegis.service
eventually aegis health --url http://127.0.0.1:8080
eventually sh -c 'systemctl show aegis.service -p StatusText | grep -q "stays in force"'
cat /check/good.yaml >$conf
systemctl reload aegis.service
eventually sh -c '! systemctl show aegis.service -p StatusText | grep -q "stays in force"'
ok "reload works, and a broken file changes nothing and is told of"

# --- watchdog
mkdir -p $dropin
printf '[Service]\nWatchdogSec=10\n' >$dropin/watchdog.conf
systemctl daemon-reload
systemctl restart aegis.service
eventually aegis health
kill -STOP "$(show MainPID)"
eventually restarted
eventually logged 'watchdog timeout'
rm $dropin/watchdog.conf
systemctl daemon-reload
ok "the watchdog ends a process that hangs, and a new one serves"

# --- port 443 by the capability alone
sed -i 's/^listen: .*/listen: 127.0.0.1:443/' $conf
systemctl restart aegis.service
eventually aegis health
serves 127.0.0.1:443 1.0.0
ok "it listens on port 443 with the one capability"

# --- the same by socket activation, without any capability
systemctl stop aegis.service
sed -i 's/^listen: .*/listen: :443/' $conf
printf '[Service]\nCapabilityBoundingSet=\nAmbientCapabilities=\nPrivateUsers=yes\n' >$dropin/sockets.conf
systemctl daemon-reload
systemctl enable --now aegis.socket
no systemctl is-active --quiet aegis.service
serves 127.0.0.1:443 1.0.0 # the connection starts it
systemctl is-active --quiet aegis.service
grep -q '^CapEff:.0000000000000000$' "/proc/$(show MainPID)/status"
systemd-analyze security --threshold=12 --no-pager aegis.service | tail -1
systemctl restart aegis.service
eventually aegis health
ok "systemd's socket starts it, without any capability"

# --- upgrade
touch /var/lib/aegis/marker
before=$(cat $conf)
dpkg -i /check/second.deb
eventually serves 127.0.0.1:443 1.1.0
test "$(cat $conf)" = "$before"
test -e /var/lib/aegis/marker
test "$(stat -c '%U:%G %a' $conf)" = "root:aegis 640"
systemctl is-enabled --quiet aegis.service
aegis audit verify
ok "the upgrade restarts it, and keeps configuration, secrets and data"

# --- removal, and back
dpkg -r aegis
no systemctl is-active --quiet aegis.service
no systemctl is-active --quiet aegis.socket
test ! -e /usr/bin/aegis
test "$(cat $conf)" = "$before"
test -e /var/lib/aegis/marker
dpkg -i /check/second.deb
test "$(cat $conf)" = "$before"
systemctl enable --now aegis.socket aegis.service
eventually aegis health
dpkg -P aegis
test ! -e /etc/aegis
test -e /var/lib/aegis/marker
getent passwd aegis
ok "removal keeps configuration and data, purging keeps the data"
echo done >>/check/result
systemctl poweroff
