-- Numbers and times that every reader takes. One user's row must not make a list fail for all: no view and no function fails on what the
-- tables accept, and none returns a number that a reader of JSON refuses.

-- Null for NaN and the infinities, which JSON does not have.
create function wlb_real(x double precision) returns double precision language sql immutable as $$
	select case when x > '-Infinity' and x < 'Infinity' then x end
$$;

-- The nearest number that fits a bigint; null for NaN.
create function wlb_whole(x numeric) returns bigint language sql immutable as $$
	select case when x <> 'NaN' then greatest(least(x, 9223372036854775807), -9223372036854775808)::bigint end
$$;

-- One of a step's parts, for charts; null where it is no number that a double holds.
create function wlb_part(parts jsonb, name text) returns double precision language sql immutable as $$
	select case when jsonb_typeof(parts->name) = 'number' and abs((parts->>name)::numeric) <= 1e300
		then (parts->>name)::float8 end
$$;

-- Null where there is no time to divide by, and at most 1e15.
create function wlb_rate(amount numeric, seconds numeric) returns double precision language sql immutable as $$
	select case when amount >= 0 and seconds > 0 and amount < 'Infinity' and seconds < 'Infinity'
		then least(amount / seconds, 1e15)::float8 end
$$;

-- A duration as a number that sums without rounding, to the nanosecond: 0 where it is none.
create function wlb_seconds(x double precision) returns numeric language sql immutable as $$
	select case when x >= 0 and x <= 1e7 then round(x::numeric, 9) else 0 end
$$;

-- The same of a row that stands for several steps.
create function wlb_span_seconds(p_step_s double precision, p_steps bigint) returns numeric language sql immutable as $$
	select greatest(least(wlb_seconds(p_step_s) * p_steps, 1e7), 0)
$$;

-- jsonb prints every digit of a number: 1e300 is an integer of 301 digits there, which readers refuse. Such numbers
-- become null. Nearly every value has no long sequence of digits and is returned unchanged.
create function wlb_plain(j jsonb) returns jsonb language plpgsql immutable as $$
begin
	if j::text !~ '[0-9]{18}' then
		return j;
	end if;
	return case jsonb_typeof(j)
		when 'object' then (select jsonb_object_agg(key, wlb_plain(value)) from jsonb_each(j))
		when 'array' then (select jsonb_agg(wlb_plain(value) order by place)
			from jsonb_array_elements(j) with ordinality as entries (value, place))
		when 'number' then case when abs((j #>> '{}')::numeric) <= 1e18 then j else 'null' end
		else j
	end;
end $$;

-- The same; null if its text is longer than `most_bytes`.
create function wlb_plain_within(j jsonb, most_bytes integer) returns jsonb language sql immutable as $$
	select case when octet_length(j::text) <= most_bytes then wlb_plain(j) end
$$;

-- Null where the time lies outside the years that differences can span.
create function wlb_moment(t timestamptz) returns timestamptz language sql immutable as $$
	select case when t > '0001-01-01 00:00:00+00' and t < '9999-12-31 00:00:00+00' then t end
$$;

-- Null where either end is missing or infinite, or lies outside the years that a difference can span.
create function wlb_span(began timestamptz, ended timestamptz) returns interval language sql immutable as $$
	select case when began > '0001-01-01' and ended > '0001-01-01' and began < '9999-12-31' and ended < '9999-12-31'
		then ended - began end
$$;

-- Seconds from one time to a later one, to the microsecond; 0 where it is not later.
create function wlb_seconds_between(began timestamptz, ended timestamptz) returns numeric language sql immutable as $$
	select greatest(extract(epoch from ended - began)::numeric, 0)
$$;

-- The time as the API has it.
create function wlb_time(t timestamptz) returns text language sql stable as $$
	select to_char(t at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
$$;

-- A time that a client tells. Clocks of hosts that MUNGE accepts differ by less than 5 minutes; a time in the years to come would stay
-- the newest of all.
create function wlb_time_told(p_time timestamptz) returns timestamptz language sql stable as $$
	select least(p_time, now() + interval '10 minutes')
$$;

-- An object of JSON with the fields of another; neither is empty. To take a large one apart and put it together again takes as long as to
-- make it.
create function wlb_json_with(p_object json, p_more json) returns json language sql immutable as $$
	select (left(p_object::text, -1) || ', ' || substr(p_more::text, 2))::json
$$;
