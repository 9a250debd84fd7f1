-- All computation is planned as long as the slowest rank of a calibration makes it: that counts among the speeds by which the
-- calibrations of users are compared.
--
-- Replaces: function wlb_calibration_speeds.

create or replace function wlb_calibration_speeds(p_machine jsonb) returns float8[] language sql immutable as $$
	with slow as (
		select greatest(1, coalesce((p_machine->>'slowest_rank')::float8, 1)) as factor
	)
	select array[(p_machine->>'peak_flops')::float8 / factor,
		(p_machine->>'peak_flops')::float8 * (p_machine->>'attention_efficiency')::float8 / factor,
		(p_machine->>'memory_bytes_per_s')::float8 / factor]
	from slow
$$;
