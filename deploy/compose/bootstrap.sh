#!/bin/sh
# Makes what compose.yaml expects, starts everything, and connects Aegis with Gitea.
# It may be run again: what is there stays.
#
#   ./bootstrap.sh                                     a token, on this machine
#   ./bootstrap.sh --tls aegis.example.org             sign-in, automatic TLS, one host name
#   ./bootstrap.sh --proxy https://aegis.example.org --gitea https://git.example.org
#                                                      sign-in, a proxy has the certificate
set -eu
cd "$(dirname "$0")"
umask 077

mode=token public= gitea=http://localhost:3000 admin=gitea-admin
fail() { echo "bootstrap: $*" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
    --tls) mode=tls public=https://${2:?--tls needs a host name}; gitea=$public; shift 2 ;;
    --proxy) mode=proxy public=${2:?--proxy needs the address of Aegis}; shift 2 ;;
    --gitea) gitea=${2:?--gitea needs the address of Gitea}; shift 2 ;;
    --admin) admin=${2:?--admin needs a user name}; shift 2 ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
done
public=${public%/} gitea=${gitea%/}
host=${public#https://}
case $mode:$public in
  token:) ;;
  *:https://*[!a-zA-Z0-9.:-]*) fail "$public is no address like https://aegis.example.org" ;;
  *:https://?*) ;;
  *) fail "the address of Aegis must begin with https://" ;;
esac
docker compose version >/dev/null || fail "docker compose is missing; it is Docker's own plugin"

random() { head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n'; }
# Nobody is root in a container: the owner of the files here, or Aegis's own number.
user=$(id -u):$(id -g)
[ "$(id -u)" != 0 ] || user=65532:65532

mkdir -p secrets data
if [ ! -e .env ]; then
  files=compose.yaml
  [ $mode = token ] || files=compose.yaml:compose.$mode.yaml
  cat >.env <<END
COMPOSE_FILE=$files
DB_PASSWORD=$(random)
GITEA_URL=$gitea/
GITEA_HOST=${gitea#http*://}
AEGIS_HOST=$host
AEGIS_USER=$user
END
  echo "made .env"
fi
[ -e aegis.yaml ] || : >aegis.yaml # or Docker makes a folder of that name
[ "$(id -u)" != 0 ] || chown -R "$user" secrets data aegis.yaml

docker compose up -d --wait db gitea
in_gitea() { docker compose exec -T -u git gitea gitea admin user "$@"; }
if ! in_gitea list --admin | awk 'NR > 1 { print $2 }' | grep -qx "$admin"; then
  in_gitea create --admin --username "$admin" --email "$admin@localhost.localdomain" --random-password
  echo "made the administrator $admin; its password stands above, and nowhere else"
fi
token() { in_gitea generate-access-token --username "$admin" --token-name "aegis-$(date +%s)" --scopes "$1" --raw; }

if [ $mode = token ]; then
  [ -s secrets/client_token ] || random >secrets/client_token
  if [ ! -s secrets/gitea_token ]; then
    token write:repository,write:issue,write:notification,write:organization,write:package,write:user,write:misc >secrets/gitea_token
    echo "made a Gitea token of $admin's for the first client"
  fi
elif [ ! -s secrets/oauth_client_id ]; then
  GITEA_ADMIN_TOKEN=$(token write:user)
  export GITEA_ADMIN_TOKEN
  docker compose run --rm -T --no-deps -e GITEA_ADMIN_TOKEN -v "$PWD/secrets:/out" aegis \
    setup gitea --url http://gitea:3000 --public-url "$public" --dir /out
  unset GITEA_ADMIN_TOKEN
  echo "the token that did this can go: Gitea, $admin, Settings, Applications"
fi
if [ ! -s aegis.yaml ]; then
  id=
  [ $mode = token ] || id=$(cat secrets/oauth_client_id)
  sed -e "s|@HOST@|$host|g" -e "s|@CLIENT_ID@|$id|g" -e "s|@GITEA_URL@|$gitea|g" aegis.$mode.yaml >aegis.yaml
  echo "made aegis.yaml"
fi
[ "$(id -u)" != 0 ] || chown -R "$user" secrets aegis.yaml

docker compose up -d --wait
if [ $mode = token ]; then
  echo "MCP endpoint http://localhost:8080/mcp; its token is in $PWD/secrets/client_token"
else
  echo "MCP endpoint $public/mcp; clients sign in there"
fi
