#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two network namespaces with one link between them, a torchrun in each; the link fails when the job leaves its mark.
# usage: two_nodes.sh link-cut|link-loss MARK PYTHON RANKS_PER_NODE PORT JOB [options of torchrun]
# Ends with 77 and a reason where this is not permitted. `tacet lab` starts it.
set -u
how=$1 mark=$2 python=$3 per_node=$4 port=$5 job=$6
shift 6
left=tacet-l$$ right=tacet-r$$
first='' second=''
clean() {
  trap - EXIT
  for pid in $first $second; do kill -TERM "$pid" 2>/dev/null; done
  wait
  ip netns del $left 2>/dev/null
  ip netns del $right 2>/dev/null
}
trap clean EXIT
trap 'exit 143' TERM INT HUP
refuse() {
  echo "two_nodes.sh: $1" >&2
  exit 77
}
command -v ip >/dev/null || refuse "the program ip is not installed"
ip netns add $left 2>/dev/null && ip netns add $right 2>/dev/null || refuse "network namespaces are not permitted here"
ip link add net0 netns $left type veth peer name net0 netns $right 2>/dev/null || refuse "veth devices are not permitted here"
for side in "$left 10.213.7.1" "$right 10.213.7.2"; do
  set -- "$@" # keeps the options of torchrun
  ip -n "${side% *}" addr add "${side#* }/24" dev net0 && ip -n "${side% *}" link set net0 up && ip -n "${side% *}" link set lo up ||
    refuse "the link could not be set up"
done
if [ "$how" = link-loss ]; then
  tc -n $left qdisc add dev net0 root netem loss 0% 2>/dev/null || refuse "tc netem is not available here"
fi
export GLOO_SOCKET_IFNAME=net0 NCCL_SOCKET_IFNAME=net0
start() { # NAMESPACE NODE, then options
  space=$1 node=$2
  shift 2
  exec ip netns exec "$space" "$python" -m torch.distributed.run --nnodes 2 --node_rank "$node" --nproc_per_node "$per_node" \
    --master_addr 10.213.7.1 --master_port "$port" "$@" "$job"
}
start $left 0 "$@" &
first=$!
start $right 1 "$@" &
second=$!
while [ ! -e "$mark" ] && kill -0 $first 2>/dev/null; do sleep 0.1; done
case $how in
  link-cut) ip -n $left link set net0 down ;;
  link-loss) tc -n $left qdisc change dev net0 root netem loss 100% ;;
esac
wait $first
code=$?
wait $second
exit $code
