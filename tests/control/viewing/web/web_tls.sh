#!/usr/bin/env bash
# The pages of fleetrun top --web and fleetd --web by HTTPS, with curl: tokens, streams, strangers of all kinds, and one line
# where something is missing. Usage: web_tls.sh FLEETRUN FLEETD
set -euo pipefail
fleetrun=$1 fleetd=$2
skip() { echo "SKIP: $*"; exit 77; }
command -v openssl >/dev/null || skip "openssl is not installed"
command -v curl >/dev/null || skip "curl is not installed"
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
children=()
clean_up() {
  kill "${children[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$folder"
}
trap clean_up EXIT
cd "$folder"
export CUDA_VISIBLE_DEVICES='' FLEET_RUNTIME_DIR=$folder/runtime
fail() { echo "FAILED: $*"; tail -n 20 ./*.out 2>/dev/null; exit 1; }
expect() { grep -q -- "$2" "$1" || { cat "$1"; fail "$1 has no '$2'"; }; }
await() {  # await FILE TEXT
  local i
  for ((i = 0; i < 3000; ++i)); do grep -qs -- "$2" "$1" && return; sleep 0.02; done
  fail "$1 has no '$2'"
}

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=page \
  -addext 'subjectAltName=IP:127.0.0.1,DNS:localhost' 2>openssl.out
token=$(openssl rand -hex 16)
(umask 077 && echo "$token" >token)
chmod 600 key.pem
tls=(--web_certificate=cert.pem --web_key=key.pem --web_token_file=token)

# refused WORDS...: one line on standard error and the code 2
refused() {
  local code=0
  "$fleetrun" top seen "$@" >refused.out 2>&1 || code=$?
  [ "$code" = 2 ] || fail "top $* ended with $code"
  [ "$(wc -l <refused.out)" = 1 ] || fail "top $* says more than one line"
}
refused --web=0.0.0.0:0
expect refused.out "lacks --web_certificate, --web_key, --web_token_file"
refused --web=0.0.0.0:0 --web_certificate=cert.pem --web_key=key.pem
expect refused.out "lacks --web_token_file"
refused --web=0.0.0.0:0 --web_token_file=token
expect refused.out "lacks --web_certificate, --web_key"
openssl ecparam -name prime256v1 -genkey -noout -out other.pem
chmod 600 other.pem
refused --web=0.0.0.0:0 --web_certificate=cert.pem --web_key=other.pem --web_token_file=token
expect refused.out "not the private key of the certificate"
openssl ec -in key.pem -aes128 -passout pass:word -out locked.pem 2>>openssl.out
chmod 600 locked.pem
refused --web=0.0.0.0:0 --web_certificate=cert.pem --web_key=locked.pem --web_token_file=token </dev/null
expect refused.out "without a password"

"$fleetrun" --nproc_per_node=2 --job_id=seen sh -c 'echo "hello of rank $RANK"; exec sleep 600' >job.out 2>&1 & children+=($!)
for ((i = 0; i < 600; ++i)); do
  "$fleetrun" top seen --once >once.out 2>&1 && break
  sleep 0.1
done
"$fleetrun" top seen --web=0.0.0.0:0 "${tls[@]}" >top.out 2>&1 & children+=($!)
await top.out "job seen: https://"
! grep -q "$token" top.out || fail "the token is shown"
port=$(sed -n 's|.*https://[^/]*:\([0-9]*\)/.*|\1|p' top.out)
page=https://127.0.0.1:$port

# get NAME ARGUMENTS...: the response with its head in NAME.out; prints the status, 000 if there is no response
get() {
  local name=$1
  shift
  curl -s -i --max-time 60 --cacert cert.pem -o "$name.out" -w '%{http_code}\n' "$@" || true
}
status() { [ "$1" = "$2" ] || fail "status $1 instead of $2: ${*:3}"; }
no_data() { ! grep -qE "seen|hello|<html|page.js" "$1" || { cat "$1"; fail "$1 has data"; }; }

# check_page PAGE EVENTS TEXT: who is let in, and how; EVENTS has TEXT
check_page() {
  local page=$1 events=$2 text=$3 path given
  for path in / /page.js "$events" /nothing "/?token=" "/?token=${token}x" "/?token=${token%?}"; do
    status "$(get none "$page$path")" 401 "$path"
    no_data none.out
  done
  expect none.out "WWW-Authenticate: Basic"
  for given in "Authorization: Bearer ${token}x" "Authorization: Basic $(printf 'a:%sx' "$token" | base64 -w0)" \
    "Cookie: fleetrun_$port=${token%?}" "Cookie: $token"; do
    status "$(get wrong -H "$given" "$page$events")" 401 "$given"
    no_data wrong.out
  done
  status "$(get post -X POST -u "me:$token" "$page/")" 405 POST
  # The address with the token gives a cookie, by which everything else is read.
  rm -f jar
  status "$(get token -c jar "$page/?token=$token")" 303 "with the token"
  expect token.out "Set-Cookie: fleetrun_[0-9]*=$token; Path=/; HttpOnly; SameSite=Strict; Secure"
  expect token.out "Location: /"
  status "$(get page -b jar "$page/")" 200 "with the cookie"
  expect page.out "page.js"
  status "$(get insecure -k -b jar "$page/page.css")" 200 "a style"
  status "$(get password -u "me:$token" "$page/")" 200 "with a password"
  expect password.out "Set-Cookie: "
  status "$(get bearer -H "Authorization: Bearer $token" "$page/")" 200 "with a header"
  # A stream of events, as EventSource reads it: it goes on until the client leaves.
  curl -s -N -i --max-time 120 --cacert cert.pem -b jar "$page$events" >events.out & local stream=$!
  await events.out "$text"
  expect events.out "Content-Type: text/event-stream"
  kill -0 $stream || fail "the stream has ended"
  kill $stream
  wait $stream 2>/dev/null || true
}
check_page "$page" /events '"job_id":"seen"'
curl -s -N --max-time 120 --cacert cert.pem -b jar "$page/log?rank=1" >log.out & children+=($!)
await log.out "hello of rank 1"
status "$(get named -b jar --connect-to "localhost:$port:127.0.0.1:$port" "https://localhost:$port/" -H "Cookie: fleetrun_$port=$token")" 200 \
  "another name"
echo "tokens"

# A browser follows the redirect, sends the Secure cookie, and shows the job.
if command -v chromium >/dev/null && command -v python3 >/dev/null; then
  python3 -B "$here/../../daemon/jobs/web_page.py" "$page/?token=$token" picture "hello of rank" >browser.out 2>&1 ||
    fail "the browser: $(tail -n 1 browser.out)"
  expect browser.out '"messages": \[\].*"elsewhere": \[\]'
  echo "browser"
else
  echo "without a browser: Chromium or python3 is not installed"
fi

# A client of another authority is told so; an old protocol, plain HTTP and noise get no answer, and nothing else suffers.
! curl -s -o /dev/null --max-time 60 "$page/?token=$token" || fail "curl takes a certificate of nobody"
! openssl s_client -connect "127.0.0.1:$port" -tls1_1 -cipher ALL:@SECLEVEL=0 </dev/null >old.out 2>&1 || fail "TLS 1.1 is spoken"
openssl s_client -connect "127.0.0.1:$port" -tls1_2 </dev/null >tls12.out 2>&1 || fail "TLS 1.2 is not spoken"
code=0
curl -s --max-time 60 -o plain.out "http://127.0.0.1:$port/?token=$token" || code=$?
[ $code != 0 ] && [ $code != 28 ] || fail "plain HTTP on the TLS port: curl ends with $code"
[ ! -s plain.out ] || no_data plain.out
exec 3<>"/dev/tcp/127.0.0.1/$port"
head -c 3000 /dev/urandom >&3 2>/dev/null || true
timeout 60 cat <&3 >noise.out 2>/dev/null || [ $? != 124 ] || fail "noise keeps its connection"
exec 3>&-
status "$(get after -b jar "$page/")" 200 "after plain HTTP and noise"

# A client that connects and says nothing is closed after a time; so is one that stops after the handshake. Both wait at once.
mkfifo idle
exec 3<>"/dev/tcp/127.0.0.1/$port" 4<>idle
timeout 60 cat <&3 >silent.out & silent=$!
timeout 60 openssl s_client -quiet -connect "127.0.0.1:$port" <&4 >handshake.out 2>&1 & half=$!
wait $silent || fail "a silent client keeps its connection"
code=0
wait $half || code=$?
[ $code != 124 ] || fail "a client without a request keeps its connection"
exec 3>&- 4>&-
echo "silence"

# More connections than there are places: those beyond are closed at once, and once they have gone, others are answered.
held=()
for ((i = 0; i < 40; ++i)); do
  exec {fd}<>"/dev/tcp/127.0.0.1/$port"
  held+=("$fd")
done
timeout 60 cat <&"${held[39]}" >last.out 2>/dev/null || [ $? != 124 ] || fail "there is no limit of connections"
for fd in "${held[@]}"; do exec {fd}>&-; done
answer=
for ((i = 0; i < 600; ++i)); do
  answer=$(get again -b jar "$page/")
  [ "$answer" = 200 ] && break
  sleep 0.05
done
status "$answer" 200 "after many connections"
for ((i = 0; i < 50; ++i)); do
  status "$(get "many" -b jar "$page/page.css")" 200 "connection $i"
done
echo "many"

# fleetd's page
options=(--listen=127.0.0.1:0 --state_dir=state --secret_file=token)
[ "$(id -u)" != 0 ] || options+=(--allow_root)
code=0
"$fleetd" "${options[@]}" --web=0.0.0.0:0 >fleetd_refused.out 2>&1 || code=$?
[ $code = 2 ] || fail "fleetd ended with $code"
expect fleetd_refused.out "lacks --web_certificate"
"$fleetd" "${options[@]}" --web=0.0.0.0:0 "${tls[@]}" >fleetd.out 2>&1 & children+=($!)
await fleetd.out "the page of its jobs is at https://"
! grep -q "$token" fleetd.out || fail "fleetd's log has the token"
port=$(sed -n 's|.*page of its jobs is at https://[^/]*:\([0-9]*\)/.*|\1|p' fleetd.out)
expect "$FLEET_RUNTIME_DIR/fleetd.$port.web" "https://.*:$port/?token=$token"
check_page "https://127.0.0.1:$port" /events '"jobs":\[\]'
echo "fleetd"
