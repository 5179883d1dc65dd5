#!/bin/sh
# Debian: configure [version before]; rpm: 1 (first) or more (upgrade).
set -e
case "$1" in
  configure) first=$([ -z "$2" ] && echo yes || echo no) ;;
  1) first=yes ;;
  [2-9]*) first=no ;;
  *) exit 0 ;; # abort-upgrade and its like: nothing changed
esac

# Owners that somebody chose later stay.
if [ "$first" = yes ]; then
  chown root:aegis /etc/aegis /etc/aegis/aegis.yaml
  chmod 750 /etc/aegis
  chmod 640 /etc/aegis/aegis.yaml
  chown root:root /etc/aegis/credentials
  chmod 700 /etc/aegis/credentials
fi

[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload || true
if [ "$first" = yes ]; then
  echo "aegis: set gitea.url and the secrets as /etc/aegis/aegis.yaml says, then: systemctl enable --now aegis"
else
  systemctl try-restart aegis.service || true
fi
