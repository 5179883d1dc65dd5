#!/bin/sh
# Makes the user before files arrive that belong to its group.
set -e
if ! getent passwd aegis >/dev/null; then
  useradd --system --user-group --no-create-home --home-dir /var/lib/aegis \
    --shell /usr/sbin/nologin --comment "Aegis, an MCP gateway for Gitea" aegis
fi
