-- Drops all functions and views, without CASCADE: what else depends on one of them makes that fail. What was granted on them is kept in
-- the setting wlb.grants for finish_code.sql.

-- A superuser makes what the owner has to use.
select set_config('role', pg_get_userbyid(nspowner), true) from pg_namespace where nspname = 'wlb_code';

do $$
declare
	names text;
begin
	if to_regnamespace('wlb_code') is null then
		create schema wlb_code;
		grant usage on schema wlb_code to public;
	end if;

	perform set_config('wlb.grants', coalesce(json_agg(statement order by place)::text, '[]'), true) from (
		select 1 as place, format('revoke all on function %s from public', oid::regprocedure) as statement
		from pg_proc where pronamespace = 'wlb_code'::regnamespace and proacl is not null
		union all
		select 2, format('grant %s on function %s to %s%s', privilege_type, oid::regprocedure,
			case when grantee = 0 then 'public' else grantee::regrole::text end, case when is_grantable then ' with grant option' end)
		from pg_proc, aclexplode(proacl) where pronamespace = 'wlb_code'::regnamespace
		union all
		select 2, format('grant %s on %s to %s%s', privilege_type, oid::regclass,
			case when grantee = 0 then 'public' else grantee::regrole::text end, case when is_grantable then ' with grant option' end)
		from pg_class, aclexplode(relacl) where relnamespace = 'wlb_code'::regnamespace and relkind = 'v'
		union all
		select 2, format('grant %s (%I) on %s to %s%s', privilege_type, attname, c.oid::regclass,
			case when grantee = 0 then 'public' else grantee::regrole::text end, case when is_grantable then ' with grant option' end)
		from pg_class c join pg_attribute a on a.attrelid = c.oid, aclexplode(attacl)
		where relnamespace = 'wlb_code'::regnamespace and relkind = 'v'
	) as granted;

	select string_agg(oid::regclass::text, ', ') into names from pg_class
	where relnamespace = 'wlb_code'::regnamespace and relkind = 'v';
	if names is not null then
		execute 'drop view ' || names;
	end if;
	select string_agg(oid::regprocedure::text, ', ') into names from pg_proc where pronamespace = 'wlb_code'::regnamespace;
	if names is not null then
		execute 'drop routine ' || names;
	end if;
	select string_agg(oid::regclass::text, ', ') into names from pg_class
	where relnamespace = 'wlb_code'::regnamespace and relkind = 'c';
	if names is not null then
		execute 'drop type ' || names;
	end if;
end $$;
