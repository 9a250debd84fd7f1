-- The lease of the wlbd that acts. Another takes it once the number of renewals has stayed the same for longer than the lease, by its
-- own clock; the number of the term then separates what either of them does. The advisory lock is held by the session of the lease.

-- The session that holds the lock; null: none does.
create function wlb_coordinator_locker() returns integer language sql volatile as $$
	select l.pid from pg_locks l join pg_database d on d.oid = l.database where l.locktype = 'advisory' and l.granted
		and l.classid::bigint = 0 and l.objid::bigint = x'574c43'::bigint and d.datname = current_database() limit 1
$$;

-- Another wlbd without lease_ms holds the same lock (coordinator/wlbd/database/sole_use.c). Any role may take it: one that is
-- not wlbd's, such as one that only reads, keeps no wlbd from acting.
create function wlb_coordinator_lock() returns boolean language sql volatile as $$
	select pg_try_advisory_lock(x'574c43'::bigint) or exists (select from pg_stat_activity a
		where a.pid = wlb_coordinator_locker() and a.usename <> session_user)
$$;

-- Ends the session p_pid if it holds the lock, as that of a wlbd that is frozen or cut off does. Raises WL409 where another session does.
create function wlb_coordinator_unlock(p_pid integer) returns void language plpgsql volatile as $$
declare
	holder integer := wlb_coordinator_locker();
begin
	if holder = p_pid then
		perform pg_terminate_backend(holder);
	elsif holder is not null then
		raise exception using errcode = 'WL409', message = format('another wlbd, session %s of PostgreSQL, uses the database without a '
			'lease: set lease_ms in its wlbd.conf, or stop it', holder);
	end if;
end $$;

create function wlb_coordinator_seen() returns json language sql stable as $$
	select json_build_object('term', term, 'beats', beats, 'lease_ms', lease_ms, 'address', address) from coordinator
$$;

-- Begins a term if the lease was neither renewed nor taken since the caller saw these numbers. Returns its number; null: it was, or the
-- session before has just been ended.
create function wlb_coordinator_take(p_term bigint, p_beats bigint, p_lease_ms integer, p_address text) returns bigint
language plpgsql volatile as $$
declare
	c coordinator;
begin
	select * into c from coordinator where term = p_term and beats = p_beats for update;
	if not found then
		return null;
	elsif not wlb_coordinator_lock() then
		perform wlb_coordinator_unlock(c.backend_pid);
		return null;
	end if;
	update coordinator set term = term + 1, beats = 0, lease_ms = p_lease_ms, backend_pid = pg_backend_pid(), address = p_address;
	return p_term + 1;
end $$;

-- Ends the sessions of terms before. Returns how many there were: they are over once it returns 0.
create function wlb_coordinator_end_others(p_term bigint) returns bigint language sql volatile as $$
	select count(pg_terminate_backend(pid)) from pg_stat_activity
	where datname = current_database() and application_name ~ '^wlbd of term \d+$' and application_name <> format('wlbd of term %s', p_term)
$$;

-- Of the wlbd of the term: 'renewed'; 'ending': renewed, and sessions of terms before were still there (p_ends_others: before it acts);
-- 'waiting': for the end of an earlier session of its own; 'lost': the term is over.
create function wlb_coordinator_renew(p_term bigint, p_ends_others boolean) returns text language plpgsql volatile as $$
declare
	c coordinator;
begin
	select * into c from coordinator where term = p_term for update;
	if not found then
		return 'lost';
	elsif c.backend_pid <> pg_backend_pid() and not wlb_coordinator_lock() then
		perform wlb_coordinator_unlock(c.backend_pid);
		return 'waiting';
	end if;
	update coordinator set beats = beats + 1, backend_pid = pg_backend_pid();
	return case when p_ends_others and wlb_coordinator_end_others(p_term) > 0 then 'ending' else 'renewed' end;
end $$;

-- The wlbd of the term acts no more: another need not wait.
create function wlb_coordinator_release(p_term bigint) returns void language sql volatile as $$
	update coordinator set term = term + 1, beats = 0, lease_ms = 0, backend_pid = null, address = '' where term = p_term
$$;

-- What each session of a wlbd that acts begins with. Raises WL503 if the term is over. The name comes before the look at the term, which
-- sees what was committed since: either wlb_coordinator_end_others finds the session, or the session finds that the term is over.
create function wlb_coordinator_session(p_term bigint) returns void language plpgsql volatile as $$
begin
	perform set_config('application_name', format('wlbd of term %s', p_term), false);
	if not exists (select from coordinator where term = p_term) then
		raise exception using errcode = 'WL503', message = 'another wlbd acts by now; try again';
	end if;
end $$;
