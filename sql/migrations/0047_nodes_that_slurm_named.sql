-- Evidence against a node is for all users, so it rests on nothing that a client has said. The nodes of a decision are the client's
-- where Slurm did not say which nodes the job has; and nodes that a job had are not its own any more once it is over.
--
-- Replaces: functions wlb_attempt_has_node, wlb_fault_found.

-- Whether wlbd has let the attempt start on the node, as one that Slurm had just named as the job's. A decision from before this
-- migration does not say whether Slurm had: such an attempt has evidence to give as soon as Slurm names the nodes to the wlbd that was
-- started with this migration, which it does within seconds.
create or replace function wlb_attempt_has_node(p_attempt bigint, p_node text) returns boolean language sql stable as $$
	select exists (select from attempts a
		where a.id = p_attempt and a.launched and (a.decision->>'of_job')::boolean and p_node = any(wlb_attempt_given(a)))
$$;

-- The keys of faults.proof, in addition to those of 0016 and 0046: job_over (Slurm had said before the loss that the job has ended, or is
-- unknown).
create or replace function wlb_fault_found(p_attempt bigint, p_kind text, p_rank integer, p_node text, p_step bigint,
	p_detail text, p_proof jsonb, p_time timestamptz)
returns void language sql as $$
	select wlb_fault_put(p_attempt, p_kind, p_rank, p_node, p_step, p_detail, null,
		case when p_kind = 'node_lost' and not coalesce(p_proof ? 'job_over', false)
				and (not coalesce(p_proof ? 'job_unknown', false) or wlb_attempt_has_node(p_attempt, p_node))
			then coalesce(p_proof, '{}') || '{"seen":true}' else p_proof end, least(p_time, now()))
$$;
