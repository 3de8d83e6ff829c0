exec 0<&3 3<&- {out}>&4 4>&-
LC_ALL=C IFS=' ' read -r _ key_length text_length
LC_ALL=C IFS= read -r -N "$key_length" key
LC_ALL=C IFS= read -r -N "$text_length" text
exec bash --noprofile --rcfile <(printf '__bunker_key=%s __bunker_out=%d\n%s' "$key" "$out" "$text") --noediting -i
