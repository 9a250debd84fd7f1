-- A role that reads the views and nothing else, for people and for Grafana.

-- Raises unless p_name may become such a role, or is one.
create function wlb_reader_check(p_name text) returns void language plpgsql stable as $$
declare
	owner oid := (select nspowner from pg_namespace where nspname = 'wlb_code');
	r pg_roles;
begin
	select * into r from pg_roles where rolname = p_name;
	if r.oid is null then
		return;
	end if;
	if r.rolsuper or r.rolcreaterole or r.rolreplication or r.rolbypassrls or pg_has_role(r.oid, owner, 'member') then
		raise exception using message = format('role %s has other rights: it is a superuser, may make roles, replicate or bypass row security, '
			'or is one with %s, which owns the tables; choose another name', p_name, owner::regrole);
	end if;
end $$;

-- Raises where p_name can use a table, by what was granted to all roles or to one that it is a member of.
create function wlb_reader_verify(p_name text) returns void language plpgsql stable as $$
declare
	found text;
begin
	select c.oid::regclass::text into found from pg_class c
	where relnamespace = (select relnamespace from pg_class where oid = 'runs'::regclass) and relkind in ('r', 'p', 'v', 'm', 'f')
		and (has_table_privilege(p_name, c.oid, 'select, insert, update, delete, truncate, references, trigger')
			or has_any_column_privilege(p_name, c.oid, 'select, insert, update, references'))
	order by relname limit 1;
	if found is not null then
		raise exception using message = format('role %s can use table %s by a grant to public, or to a role that it is a member of; revoke that',
			p_name, found);
	end if;
end $$;

-- Makes the role, or gives it these rights alone where it is there; may be repeated. It may select from the views, also from those of later
-- versions, in at most 16 connections, whose transactions are read-only and whose statements have bounds, unless it asks otherwise: it can
-- write nothing in any case. Functions are executed with its own rights, except those two that read for views (wlb_reads_views).
create function wlb_reader_make(p_name text) returns void language plpgsql as $$
declare
	owner regrole := (select nspowner from pg_namespace where nspname = 'wlb_code')::regrole;
	tables regnamespace := (select relnamespace from pg_class where oid = 'runs'::regclass)::regnamespace;
	setting text;
begin
	perform wlb_reader_check(p_name);
	if not exists (select from pg_roles where rolname = p_name) then
		execute format('create role %I', p_name);
	end if;
	execute format('alter role %I login connection limit 16', p_name);
	foreach setting in array array['default_transaction_read_only = on', 'statement_timeout = ''30s''', 'lock_timeout = ''5s''',
			'idle_in_transaction_session_timeout = ''60s'''] loop
		execute format('alter role %I in database %I set %s', p_name, current_database(), setting);
	end loop;
	execute format('revoke all on all tables in schema %s, wlb_code from %I', tables, p_name);
	execute format('revoke all on all sequences in schema %s from %I', tables, p_name);
	execute format('alter default privileges for role %s in schema %s revoke all on tables from %I', owner, tables, p_name);
	execute format('grant connect on database %I to %I', current_database(), p_name);
	execute format('grant usage on schema wlb_code to %I', p_name);
	execute format('grant select on all tables in schema wlb_code to %I', p_name); -- which has views alone
	execute format('alter default privileges for role %s in schema wlb_code grant select on tables to %I', owner, p_name);
	perform wlb_reader_verify(p_name);
exception when insufficient_privilege then
	raise insufficient_privilege using message = format('%s; a superuser can make it: sudo -u postgres wlb db reader %s --database dbname=%s',
		sqlerrm, p_name, current_database());
end $$;

-- Raises unless the session may select from views. For functions that read tables for them with their owner's rights.
create function wlb_reads_views() returns void language plpgsql stable as $$
begin
	if not has_table_privilege(session_user, 'wlb_code.run_summary', 'select') then
		raise insufficient_privilege using message = format('permission denied: %s may not read the views; see wlb db reader', session_user);
	end if;
end $$;
