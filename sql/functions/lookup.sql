-- Which run a name means, and who may read and change it. The SQLSTATEs WL403, WL404, WL409, WL413 and WL503 are the HTTP status of the
-- reply, with the message for the user.

-- The newest run of the name that is confirmed or the asker's own; if there is none, for an administrator, any other.
-- All columns are null if there is no run.
create function wlb_run_meant(p_name text, p_uid bigint, p_admin boolean) returns runs language sql stable as $$
	select * from runs where (name = p_name or alias = p_name) and (confirmed or uid = p_uid or p_admin)
	order by (confirmed or uid is not distinct from p_uid) desc, id desc limit 1
$$;

-- The same, but raises WL404 if there is no run.
create function wlb_run_found(p_name text, p_uid bigint, p_admin boolean) returns runs language plpgsql stable as $$
declare
	r runs := wlb_run_meant(p_name, p_uid, p_admin);
	leader text := split_part(p_name, '+', 1);
begin
	if r.id is null and leader <> p_name and (wlb_run_meant(leader, p_uid, p_admin)).id is not null then
		raise exception using errcode = 'WL404', message = format(
			'no run %s: the runs of heterogeneous job %s are on its component 0; see run %s', p_name, leader, leader);
	elsif r.id is null then
		raise exception using errcode = 'WL404', message = format('no run %s; wlb runs lists them', p_name);
	end if;
	return r;
end $$;

-- The run, for an account that is going to change it; p_uid null: an administrator.
create function wlb_run_actable(p_name text, p_uid bigint) returns runs language plpgsql stable as $$
declare
	r runs := wlb_run_found(p_name, p_uid, p_uid is null);
begin
	if p_uid is not null and r.uid <> p_uid then
		raise exception using errcode = 'WL403', message = format('run %s belongs to another user', p_name);
	end if;
	return r;
end $$;

-- p_uid null: the caller, p_asker, may read everything; then the owner is not checked.
create function wlb_run_readable(p_name text, p_uid bigint, p_asker bigint) returns runs language plpgsql stable as $$
declare
	r runs := wlb_run_found(p_name, coalesce(p_uid, p_asker), p_uid is null);
begin
	if p_uid is not null and r.uid <> p_uid then
		raise exception using errcode = 'WL403', message = format(
			'run %s belongs to another user, and private_data hides it; ask %s or an administrator', p_name, r.user_name);
	end if;
	return r;
end $$;

-- The newest attempt of a run, for an account that is going to change it; p_uid null: an administrator.
create function wlb_run_newest_attempt(p_name text, p_uid bigint) returns text language sql stable as $$
	select uuid::text from attempts where run_id = (wlb_run_actable(p_name, p_uid)).id order by number desc limit 1
$$;
