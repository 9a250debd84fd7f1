-- Tags and notes of runs. As in wlb_run_set, p_uid is the owner that the run must have, null for an administrator, and p_by the account
-- that asks; the run's lock keeps two requests from passing a bound together.

create function wlb_tags_json(p_run bigint) returns json language plpgsql stable as $$
begin
	return (select coalesce(json_agg(tag order by tag), '[]') from tags where run_id = p_run);
end $$;

create function wlb_notes_json(p_run bigint) returns json language plpgsql stable as $$
begin
	return (select coalesce(json_agg(json_build_object('number', number, 'time', wlb_time(written_at), 'by', written_by, 'note', note)
		order by number), '[]') from notes where run_id = p_run);
end $$;

-- Adds and removes tags: one that the run has, or does not have, is no mistake.
create function wlb_run_tag(p_name text, p_uid bigint, p_by bigint, p_add json, p_remove json)
returns json language plpgsql as $$
declare
	r runs := wlb_run_actable(p_name, p_uid);
begin
	select * into r from runs where id = r.id for no key update;
	delete from tags where run_id = r.id and tag in (select json_array_elements_text(p_remove));
	insert into tags (run_id, tag, set_by) select distinct r.id, each, wlb_changer(r, p_by) from json_array_elements_text(p_add) as each
		on conflict do nothing;
	if (select count(*) from tags where run_id = r.id) > 32 then
		raise exception using errcode = 'WL409', message = format(
			'run %s would have more than 32 tags; remove some with wlb tag %1$s --remove TAG', p_name);
	end if;
	return json_build_object('run_id', r.name, 'tags', wlb_tags_json(r.id));
end $$;

-- Removes the note of a number, or adds one where p_note is not null.
create function wlb_run_note(p_name text, p_uid bigint, p_by bigint, p_note text, p_remove integer)
returns json language plpgsql as $$
declare
	r runs := wlb_run_actable(p_name, p_uid);
begin
	select * into r from runs where id = r.id for no key update;
	delete from notes where run_id = r.id and number = p_remove;
	if p_remove is not null and not found then
		raise exception using errcode = 'WL404', message = format(
			'run %s has no note %s; wlb show %1$s lists its notes', p_name, p_remove);
	elsif p_note is not null and (select count(*) from notes where run_id = r.id) >= 100 then
		raise exception using errcode = 'WL409', message = format(
			'run %s has 100 notes, which is the most; remove one with wlb note %1$s --remove N', p_name);
	elsif p_note is not null then
		insert into notes (run_id, number, note, written_by)
			select r.id, coalesce(max(number), 0) + 1, p_note, wlb_changer(r, p_by) from notes where run_id = r.id;
	end if;
	return json_build_object('run_id', r.name, 'notes', wlb_notes_json(r.id));
end $$;
