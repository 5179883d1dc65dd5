#!/bin/sh
# Debian: remove, upgrade, ...; rpm: 0 (removal) or more (upgrade).
set -e
case "$1" in
  remove | 0) ;;
  *) exit 0 ;;
esac
[ -d /run/systemd/system ] || exit 0
systemctl --no-reload disable --now aegis.service aegis.socket aegis-http.socket || true
