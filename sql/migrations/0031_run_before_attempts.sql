-- Statements that begin an attempt lock its run before anything else, as all others that change an attempt do. They are no
-- longer sent over one connection: two of them at once would give two attempts the same number, or deadlock with a delivery.
--
-- Replaces: functions wlb_attempt_create, wlb_attempt_start.

create or replace function wlb_attempt_create(p_run bigint, p_uuid uuid) returns attempts language plpgsql as $$
declare
	a attempts;
begin
	perform from runs where id = p_run for no key update;
	insert into attempts (run_id, number, uuid)
	select p_run, coalesce(max(number), 0) + 1, p_uuid from attempts where run_id = p_run
	returning * into a;
	-- An attempt that begins says that the run is not over, unless its launcher said so.
	update runs set state = case when a.number = 1 then 'starting' else 'restarting' end, reason = '',
		ended_by = null, ended_at = null
	where id = p_run and ended_by is distinct from 'launcher';
	return a;
end $$;

-- Stores a decision to start; asked again with the same attempt_id, the first one stands. p_held_nodes: how many nodes
-- of the job could work.
create or replace function wlb_attempt_start(p_run bigint, p_uuid uuid, p_decision jsonb, p_policy jsonb,
	p_held_nodes integer) returns json language plpgsql as $$
declare
	a attempts;
	layout jsonb := p_decision->'layout';
begin
	perform from runs where id = p_run for no key update;
	select * into a from attempts where uuid = p_uuid;
	if a.id is null then
		a := wlb_attempt_create(p_run, p_uuid);
	end if;
	if a.decision is null then
		update attempts set
			launched = true,
			held_nodes = p_held_nodes,
			decision = p_decision || jsonb_build_object('attempt', a.number),
			nodes = array(select jsonb_array_elements_text(p_decision->'nodes')),
			spares = array(select jsonb_array_elements_text(p_decision->'spares')),
			tp = (layout->>'tp')::integer, cp = (layout->>'cp')::integer,
			pp = (layout->>'pp')::integer, dp = (layout->>'dp')::integer,
			resumed_step = (p_decision->'checkpoint'->>'step')::bigint,
			checkpoint_path = p_decision->'checkpoint'->>'path'
		where id = a.id;
		update runs set policy = policy || p_policy where id = p_run;
		-- Of an older attempt that is still open nobody will tell the end: its launcher was replaced.
		perform wlb_attempt_end(id, 'lost', null, format('attempt %s has begun', a.number), now())
		from attempts where run_id = p_run and number < a.number and state in ('starting', 'running');
	end if;
	return json_build_object('card', wlb_attempt_card(a.id), 'decision',
		(select decision from attempts where id = a.id));
end $$;
