#!/bin/sh
# Writes new random tokens into tokens.env, unless it is there: delete it first to rotate them.
set -eu
umask 077
cd "$(dirname "$0")"
test -e tokens.env && exit 0
token() { head -c 24 /dev/urandom | base64 | tr '+/' '-_'; }
# NATS would read one that begins with a digit as a number.
printf 'nats=t%s\ngateway=t%s\n' "$(token)" "$(token)" > tokens.env
