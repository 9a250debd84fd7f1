-- Commands, outputs and errors of attempts. Who calls a function that returns them says whether the asker may read them.

-- A text of a client as one line of at most p_most characters: without control characters and those that change the direction of text.
create function wlb_one_line(p_text text, p_most integer) returns text language sql immutable as $$
	select left(regexp_replace(coalesce(p_text, ''), '[\u0001-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]', ' ', 'g'), p_most)
$$;

-- A run keeps those of its newest 1,000 attempts, which are as many as a reply has.
create function wlb_outputs_trim(a attempts) returns void language sql as $$
	delete from attempt_outputs o using attempts b
	where b.id = o.attempt_id and b.run_id = a.run_id and b.number <= a.number - 1000
$$;

create function wlb_record_command(a attempts, d jsonb) returns void language sql as $$
	insert into attempt_outputs (attempt_id, command, stdout_path, stdout_offset, stderr_path, stderr_offset, labelled)
	values (a.id, wlb_one_line(d->>'command', 4096), wlb_one_line(d->>'stdout', 4096), (d->>'stdout_offset')::bigint,
		wlb_one_line(d->>'stderr', 4096), (d->>'stderr_offset')::bigint, coalesce((d->>'labelled')::boolean, false))
	on conflict (attempt_id) do update set command = excluded.command, stdout_path = excluded.stdout_path,
		stdout_offset = excluded.stdout_offset, stderr_path = excluded.stderr_path, stderr_offset = excluded.stderr_offset,
		labelled = excluded.labelled;
	select wlb_outputs_trim(a)
$$;

-- d: `error` of a record of the type attempt_end; null: it has none.
create function wlb_record_error(a attempts, d jsonb) returns void language sql as $$
	insert into attempt_outputs (attempt_id, error, error_cause, error_rank, error_follows)
	select a.id, wlb_one_line(d->>'text', 511), wlb_one_line(d->>'cause', 255), (d->>'rank')::integer,
		coalesce((d->>'is_consequence')::boolean, false)
	where d->>'text' <> ''
	on conflict (attempt_id) do update set error = excluded.error, error_cause = excluded.error_cause,
		error_rank = excluded.error_rank, error_follows = excluded.error_follows;
	select wlb_outputs_trim(a)
$$;

create function wlb_attempt_error_json(p_attempt bigint) returns json language sql stable as $$
	select json_build_object('text', error, 'cause', error_cause, 'rank', error_rank, 'is_consequence', error_follows)
	from attempt_outputs where attempt_id = p_attempt and error <> ''
$$;

create function wlb_attempt_output_json(p_attempt bigint) returns json language sql stable as $$
	select json_build_object('command', o.command, 'stdout', o.stdout_path, 'stdout_offset', o.stdout_offset,
		'stderr', o.stderr_path, 'stderr_offset', o.stderr_offset, 'labelled', o.labelled, 'slurm_step', a.slurm_step)
	from attempt_outputs o join attempts a on a.id = o.attempt_id where o.attempt_id = p_attempt and o.command <> ''
$$;
