-- After functions and views are made: their bodies are checked, and what was granted on those before them is granted again.

set local check_function_bodies = on;
select case lanname when 'sql' then fmgr_sql_validator(p.oid) else plpgsql_validator(p.oid) end
from pg_proc p join pg_language l on l.oid = prolang where pronamespace = 'wlb_code'::regnamespace;

do $$
declare
	statement text;
begin
	for statement in select json_array_elements_text(current_setting('wlb.grants')::json) loop
		begin
			execute statement;
		exception when undefined_table or undefined_column or undefined_function then
			null; -- this version has it no more
		end;
	end loop;
end $$;
