# The bash interpreter of a code context: an interactive shell without a terminal, because only that one comes
# back to its prompt when it is interrupted, whatever it was doing. Its commands are lines on descriptor 0,
# three for a run, in which the fields are quoted as $'...'; $__bunker_out takes messages, which are those
# of the Python interpreter (see there).
#
#     __bunker_run CODE NAME=VALUE...
#     eval "$__bunker_code" 0</dev/null
#     __bunker_done
#
# The code is not evaluated in a function, because then what it declares would be gone with it, and the
# end is a line of its own, so that it comes after an interrupt, too.
PS1= PS2= PS0= PS4='+ '
unset PROMPT_COMMAND MAILCHECK HISTFILE TMOUT
set +o history +H
__bunker_count=0
__bunker_saved=()

# At the prompt an interrupt would take the next line with it.
trap '' INT

__bunker_run() {
	((++__bunker_count))
	__bunker_code=$1
	shift
	local name variable
	for variable; do
		name=${variable%%=*}
		if [[ -v $name ]]; then
			__bunker_saved+=("$(printf 'export %s=%q' "$name" "${!name}")")
		else
			__bunker_saved+=("unset $name")
		fi
		export "$variable"
	done
	trap - INT
}

__bunker_sync() {
	printf '\n%s synced %d\n%s' "$__bunker_key" ${#__bunker_count} "$__bunker_count" >&"$__bunker_out"
}

__bunker_done() {
	local status=$? name=ExitCode undo
	trap '' INT
	set +eux
	for undo in "${__bunker_saved[@]}"; do eval "$undo"; done
	__bunker_saved=()
	if ((status == 130)); then name=KeyboardInterrupt; fi
	if ((status != 0)); then
		undo="the last command ended with status $status"
		printf '\n%s error %d %d %d\n%s%s%s' "$__bunker_key" ${#name} ${#status} ${#undo} \
			"$name" "$status" "$undo" >&"$__bunker_out"
	fi
	printf '\n%s done\n' "$__bunker_key" >&"$__bunker_out"
}

__bunker_start() {
	local LC_ALL=C
	printf '\n%s ready %d %d\n%s%s' "$__bunker_key" ${#BASH_VERSION} ${#PWD} "$BASH_VERSION" "$PWD" >&"$__bunker_out"
}
__bunker_start
unset -f __bunker_start
