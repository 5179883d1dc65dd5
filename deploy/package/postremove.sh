#!/bin/sh
# Data and user stay at every removal: the audit log is evidence, and grants and
# certificates are hard to get back. Removing them is a decision of its own:
# rm -r /var/lib/aegis && userdel aegis
set -e
[ -d /run/systemd/system ] && systemctl daemon-reload || true
if [ "$1" = purge ] && [ -d /etc/aegis/credentials ]; then
  rm -rf /etc/aegis/credentials
  rmdir --ignore-fail-on-non-empty /etc/aegis 2>/dev/null || true
fi
