#!/bin/sh
# Makes what the replicas share: the key that seals the store, and Redis's password.
# What is there already stays. Keep a copy of store_key apart from Redis's backups.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
[ -s secrets/store_key ] || openssl rand -hex 32 > secrets/store_key
[ -s secrets/redis_password ] || openssl rand -hex 32 > secrets/redis_password
password=$(cat secrets/redis_password)
cat > secrets/users.acl <<ACL
user default off
user aegis on >$password ~aegis:* +@read +@write +@scripting +time +ping +info
ACL
# Redis and Aegis run as users of their own in their containers.
chmod 644 secrets/users.acl secrets/store_key secrets/redis_password
[ -s secrets/oauth_client_secret ] || echo "now put the secret of Gitea's OAuth application into secrets/oauth_client_secret"
