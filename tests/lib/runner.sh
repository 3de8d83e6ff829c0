# Runs test programs side by side, tries each that fails a second time, and adds up what they say.
# Sourced by tools/test, which sets: work, a directory for logs; deadline, in seconds since 1970;
# only, a pattern of names; long, not empty for a run in which a flake is a failure.
# shellcheck shell=bash
passed=0 failed=0 skipped=0

# ---- one test ----

# Adds up what one test program said of itself: its last "N passed, N failed", or node's counts.
count() {
	local name=$1 status=$2 log=$3 seconds=$4 p f s
	p=$(sed -n 's/^\([0-9]*\) passed, [0-9]* failed.*/\1/p;s/^# pass \([0-9]*\)/\1/p' "$log" | tail -n 1)
	f=$(sed -n 's/^[0-9]* passed, \([0-9]*\) failed.*/\1/p;s/^# fail \([0-9]*\)/\1/p' "$log" | tail -n 1)
	s=$(sed -n 's/^# skipped \([0-9]*\)/\1/p;s/.* failed, \([0-9]*\) skipped$/\1/p' "$log" | tail -n 1)
	p=${p:-0} f=${f:-0} s=${s:-0}
	if [ "$status" != 0 ] && [ "$f" = 0 ]; then f=1; fi
	if [ "$f" != 0 ] && [ -z "$second_try" ]; then
		printf '%-46s %4d passed %3d failed: it is tried once more, alone  %3d s\n' "$name" "$p" "$f" "$seconds"
		{ grep -h -A 12 '^ *not ok' "$log" || tail -n 60 "$log"; } | head -c 6000
		again+=("$name")
		return
	fi
	if [ "$f" = 0 ] && [ -n "$second_try" ]; then flakes+=("$name"); fi
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	printf '%-46s %4d passed %3d failed %3d skipped  %3d s\n' "$name" "$p" "$f" "$s" "$seconds"
	if [ "$status" = 124 ] || [ "$status" = 137 ]; then echo "    ended: it took longer than it may"; fi
	if [ "$f" != 0 ]; then tail -c 60000 "$log"; fi
	grep -h '^ *ok .*# SKIP' "$log" | sed 's/^ *ok [0-9]* - /    skipped: /'
}

# ---- side by side ----

declare -A running_name=() running_log=() running_since=() command_of=() limit_of=()
again=() flakes=() second_try= started=0

# Each that ends writes its number and its status here. bash's `wait -n` forgets those that end while
# another command runs.
mkfifo "$work/ended"
exec {ended}<>"$work/ended"

# Waits until one of those that run has ended, and counts it.
collect() {
	local number status
	read -r number status <&"$ended"
	count "${running_name[$number]}" "$status" "${running_log[$number]}" $(($(date +%s) - running_since[$number]))
	rm -f "${running_log[$number]}"
	unset "running_name[$number]" "running_log[$number]" "running_since[$number]"
}

collect_all() { while [ ${#running_name[@]} -gt 0 ]; do collect; done; }

# run PLACES SECONDS NAME COMMAND…: when fewer than PLACES others run
run() {
	local places=$1 seconds=$2 name=$3 left log
	shift 3
	[[ $name =~ $only ]] || return 0
	while [ ${#running_name[@]} -ge "$places" ]; do collect; done
	left=$((deadline - $(date +%s)))
	if [ "$left" -le 0 ]; then
		echo "$name: not run, the time for all tests is over"
		failed=$((failed + 1))
		return
	fi
	log=$(mktemp "$work/log.XXXXXX")
	limit_of[$name]=$seconds
	command_of[$name]=$(printf '%q ' "$@")
	started=$((started + 1))
	{
		timeout -k 10 "$((seconds < left ? seconds : left))" "$@" >"$log" 2>&1 </dev/null {ended}>&-
		echo "$started $?" >&"$ended"
	} &
	running_name[$started]=$name running_log[$started]=$log running_since[$started]=$(date +%s)
}

# directory_of KIND: where a build of that kind is
directory_of() {
	case $1 in
	asan | coverage) echo "build-$1" ;;
	*) echo build ;;
	esac
}

# Runs those that failed a second time, each with the machine for itself.
run_again() {
	local name kind
	second_try=yes
	for name in "${again[@]}"; do
		kind=${name%% *}
		export BUNKER="$PWD/$(directory_of "$kind")/bunker"
		echo "once more: $name"
		eval "run 1 ${limit_of[$name]} \"\$name\" ${command_of[$name]}"
		collect_all
	done
}

# ---- the end ----

# Lists the flakes, prints the closing line, and fails if a test did (in a long run: or a flake).
report() {
	local name
	if [ ${#flakes[@]} -gt 0 ]; then
		echo "flakes: ${#flakes[@]} failed at first and passed when tried again"
		for name in "${flakes[@]}"; do echo "    flake: $name"; done
		if [ "$long" ]; then failed=$((failed + ${#flakes[@]})); fi
	fi
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
}
