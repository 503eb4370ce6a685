#!/bin/sh
# Network namespaces for the guide docs/deploy.md on one machine: each organisation in a network of its own, with one way out to the
# server's. `namespaces.sh up` makes them, `namespaces.sh down` removes them; both need root. A command runs in one with
#   ip netns exec fet-NAME COMMAND
# where NAME is hub (10.77.0.1), bank (10.77.0.2), streets (10.77.0.3) or weather (10.77.0.4).
set -eu
names="hub bank streets weather"
case "${1:-}" in
up)
    ip link add fet-bridge type bridge
    ip link set fet-bridge up
    number=0
    for name in $names; do
        number=$((number + 1))
        ip netns add "fet-$name"
        ip link add "fet-$name" type veth peer name eth0 netns "fet-$name"
        ip link set "fet-$name" master fet-bridge up
        ip -n "fet-$name" link set lo up
        ip -n "fet-$name" addr add "10.77.0.$number/24" dev eth0
        ip -n "fet-$name" link set eth0 up
    done
    ;;
down)
    for name in $names; do
        ip netns delete "fet-$name" 2> /dev/null || true
    done
    ip link delete fet-bridge 2> /dev/null || true
    ;;
*)
    echo "usage: namespaces.sh up|down" >&2
    exit 2
    ;;
esac
