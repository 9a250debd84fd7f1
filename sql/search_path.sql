-- Names of functions and views are found without their schema in each session that begins later.
do $$
declare
	change text := format('alter database %I set search_path = %s, wlb_code', current_database(), current_setting('search_path'));
begin
	if not exists (select from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase, unnest(s.setconfig) as setting
			where d.datname = current_database() and s.setrole = 0 and setting ~ '^search_path=.*\mwlb_code\M') then
		execute change;
	end if;
exception when insufficient_privilege then
	raise insufficient_privilege using message = format('permission denied: %I does not own the database, whose owner has to run first: '
		'%s; create schema wlb_code authorization %1$I', current_user, change);
end $$;
