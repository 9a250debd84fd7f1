"""Rows of many runs, as wlbd would have stored them: what bench_database.py measures with."""
RUNS, LONG_RUN, LONG_STEPS, RUNNING, FOLLOWED, NODES = 2000, 1000, 1000000, 20, 20, 512
FIRST_JOB = 100000

# Run n has 1 to 4 attempts, the long one 61, each a share of its steps; the nodes of n are some after another. Runs end two hours after
# each other; the last ones still run.
RUN_ROWS = """
    create temp table planned as
    select n, case when n = {LONG_RUN} then {LONG_STEPS} else {each} end as steps,
        case when n = {LONG_RUN} then 61 else 1 + n % 4 end as attempts,
        case when n = {LONG_RUN} then 64 else 4 + n % 29 end as nodes, n > {RUNS} - {RUNNING} as is_running,
        case when n > {RUNS} - {RUNNING} then now() else now() - interval '2 hours' * ({RUNS} - {RUNNING} - n) end as ended
    from generate_series(1, {RUNS}) as n;
    insert into runs (name, job_id, job_name, cluster, uid, user_name, state, reason, ended_by, model, seq_length_tokens, global_batch_size,
        train_iters, submitted_at, created_at, started_at, ended_at, steps, first_step, last_step, first_loss, last_loss, tokens,
        step_seconds, steps_repeated, confirmed, is_followed)
    select ({FIRST_JOB} + n)::text, {FIRST_JOB} + n, 'train-' || n % 37, 'bench', 1000 + n % 40, 'user' || n % 40,
        case when is_running then 'running'
            else (array['complete', 'complete', 'complete', 'failed', 'cancelled', 'out_of_nodes'])[1 + n % 6] end,
        case when not is_running and n % 6 = 3 then 'rank 3 on node7 was killed by signal 9' else '' end,
        case when not is_running then 'launcher' end,
        jsonb_build_object('name', 'llama-' || n % 7, 'layers', 32, 'hidden', 4096), 8192, 512, steps,
        ended - interval '1 s' * (steps + 300), ended - interval '1 s' * (steps + 240), ended - interval '1 s' * (steps + 200),
        case when not is_running then ended end, steps, 1, steps, 11, 2.5 + 8.5 / steps, steps * 4194304::numeric, steps * 0.98,
        (attempts - 1) * 50, true, n % 100 = 50
    from planned order by n"""

ATTEMPT_ROWS = """
    create temp table tried as
    select r.id as run_id, k as number, p.*, (k - 1) * p.steps / attempts as after_step, k * p.steps / attempts as last_step,
        ended - interval '1 s' * p.steps as began
    from planned p join runs r on r.name = ({FIRST_JOB} + p.n)::text, generate_series(1, p.attempts) as k;
    insert into attempts (run_id, number, uuid, state, reason, launched, decision, nodes, tp, cp, pp, dp, world_size, dtype, device,
        slurm_step, resumed_step, new_steps, exit_code, created_at, started_at, reported_at, ended_at, plan, memory_bytes, held_nodes,
        step_seconds, repeated_seconds, checkpoint_seconds, node_reported, reported_step)
    select run_id, number, gen_random_uuid(), case when number < attempts then 'failed' when is_running then 'running' else 'complete' end,
        case when number < attempts then 'rank 3 on node7 was killed by signal 9' else '' end, true,
        json_build_object('nodes', names, 'tasks_per_node', 8), names, 8, 1, 1, nodes, 8 * nodes, 'bfloat16', 'cuda',
        {FIRST_JOB} + n || '.' || number, nullif(after_step, 0), last_step - after_step, case when number < attempts then 137 else 0 end,
        began + interval '1 s' * (after_step - 30), began + interval '1 s' * (after_step - 20), began + interval '1 s' * (after_step - 10),
        case when number < attempts or not is_running then began + interval '1 s' * (last_step + 60) end,
        '{{"layout": {{"tp": 8, "cp": 1, "pp": 1, "dp": 4}}, "step_s": 0.97, "utilization": 0.4}}', 60000000000, nodes,
        (last_step - after_step) * 0.98, 50, 30, true, last_step
    from tried, lateral (select array_agg('node' || 1 + (n * 7 + i) % {NODES} order by i) as names from generate_series(1, nodes) as i) as x
    order by run_id, number;
    insert into rank_map (attempt_id, rank, node, local_rank, device)
    select a.id, (place - 1) * 8 + k, name, k, k
    from attempts a, unnest(a.nodes) with ordinality as u (name, place), generate_series(0, 7) as k;
    insert into sources (attempt_id, source, last_seq) select id, source, new_steps from attempts, unnest(array['run', '0']) as source;
    create temp table spans as select t.*, a.id as attempt_id from tried t join attempts a using (run_id, number);
    create index on spans (run_id)"""

# 64 values of `parts`, since to make each anew would take most of the time.
STEP_ROWS = """
    create temp table parted as select k, (select jsonb_object_agg(name, round((random() * 0.2)::numeric, 9)) from unnest(array['forward_s',
        'backward_s', 'tp_s', 'cp_s', 'pp_s', 'bubble_s', 'dp_s', 'optimizer_s', 'loader_s', 'world_s']) as name where k >= 0) as parts
    from generate_series(0, 63) as k;
    create index on parted (k);
    alter table steps drop constraint steps_pkey;
    drop index steps_attempt_id_step_idx, steps_run_id_recorded_at_idx, steps_recorded_at_idx;
    insert into steps (run_id, step, attempt_id, loss, grad_norm, learning_rate, tokens, documents, step_time_s, tokens_per_s, held_tokens,
        predicted_imbalance, imbalance, parts, recorded_at)
    select run_id, s, attempt_id, 2.5 + 8.5 / s + random() * 0.1, 0.5 + random(), 0.001, 4194304, 900, 0.93 + random() * 0.1, 4279902, 210,
        1.01, 1.02 + random() * 0.02, parts, began + interval '1 s' * s
    from spans, generate_series(after_step + 1, last_step) as s join parted on k = s % 64;
    alter table steps add primary key (run_id, step);
    create index on steps (attempt_id, step);
    create index on steps (run_id, recorded_at);
    create index on steps using brin (recorded_at);
    insert into steps_superseded (run_id, step, attempt_id, loss, grad_norm, learning_rate, tokens, step_time_s, tokens_per_s, recorded_at,
        parts)
    select run_id, s, attempt_id, 2.6, 0.8, 0.001, 4194304, 0.98, 4279902, began + interval '1 s' * s, parts
    from spans, generate_series(last_step + 1, last_step + 50) as s join parted on k = s % 64 where number < attempts"""

RECORD_ROWS = """
    insert into checkpoints (run_id, attempt_id, step, path, size_bytes, duration_s, stall_s, recorded_at)
    select run_id, attempt_id, s, '/scratch/' || n || '/step_' || s, 80000000000, 20, 0.4, began + interval '1 s' * s
    from spans, generate_series(after_step + 100, last_step, case when n = {LONG_RUN} then 100 else 500 end) as s;
    insert into evaluations (run_id, step, attempt_id, loss, tokens, duration_s, recorded_at)
    select run_id, s, attempt_id, 2.6, 1000000, 4, began + interval '1 s' * s
    from spans, generate_series(after_step + 500, last_step, 1000) as s;
    insert into events (run_id, attempt_id, kind, detail, recorded_at)
    select run_id, attempt_id, 'memory', 'event ' || e, began + interval '1 s' * (after_step + e)
    from spans, generate_series(1, case when n = {LONG_RUN} then 164 else 20 end) as e;
    insert into faults (run_id, attempt_id, kind, is_loss, rank, node, step, evidence, detail, sentence, strength, cause, detected_at,
        proof)
    select run_id, attempt_id, kind, true, case when kind = 'rank_lost' then 3 end, 'node' || 1 + (n * 7 + number) % {NODES}, last_step,
        '{{"seen": 1}}',
        'ended with 137', kind || ' on a node', case when kind = (array['rank_lost', 'node_lost'])[1 + number % 2] then 5 else 3 end,
        kind = (array['rank_lost', 'node_lost'])[1 + number % 2], began + interval '1 s' * (last_step + 1),
        case when kind = 'node_lost' then '{{"seen": true}}'::jsonb else '{{"exit_code": 137, "first": true}}' end
    from spans, unnest(array['rank_lost', 'node_lost']) as kind where number < attempts;
    insert into verdicts (run_id, attempt_id, watcher, number, kind, state, ranks, rank_count, nodes, step, cost_percent, certainty,
        evidence, action, began_at, found_at, confirmed_at, over_at)
    select run_id, attempt_id, 1, v, (array['slow_compute', 'slow_link', 'hang'])[v],
        case when is_running and number = attempts then 'confirmed' else 'over' end,
        '{{3}}', 1, array['node' || 1 + (n * 7 + 1) % {NODES}], last_step, 7, 0.99, 'rank 3 computes 7 % longer', 'report',
        began + interval '1 s' * last_step,
        began + interval '1 s' * last_step, began + interval '1 s' * last_step,
        case when not (is_running and number = attempts) then began + interval '1 s' * last_step end
    from spans, generate_series(1, 3) as v"""

NODE_ROWS = """
    insert into node_checks (node, healthy, reason, checks, uid, checked_at, failed, passed)
    select 'node' || k, c % 9 <> 0, case when c % 9 = 0 then 'disk: 3 MiB/s' else '' end, '[{{"check": "disk", "verdict": "ok"}}]', 0,
        now() - interval '1 day' * c, case when c % 9 = 0 then '{{disk}}'::text[] else '{{}}' end, '{{disk,products}}'
    from generate_series(1, {NODES}) as k, generate_series(1, 40) as c;
    insert into followed_names (run_id, name, attempt_id, stored)
    select r.id, said, (select max(id) from attempts a where a.run_id = r.id), r.steps
    from runs r, unnest(array['loss', 'grad_norm', 'lr', 'accuracy']) as said where is_followed;
    insert into followed_values (attempt_id, name, is_of_attempt, step, value, source, stream, generation, at)
    select s.attempt_id, f.name, false, s.step, s.loss, 3, 0, 0, s.step
    from followed_names f join steps s on s.run_id = f.run_id;
    update runs r set faults = (select count(*) from faults f where f.run_id = r.id)"""


def fill(sql, steps):
    """Puts `steps` steps into the database. `sql` executes a text in one session. Foreign keys are right, and not checked row by row; the
    times of runs that are over are computed afterwards, by the triggers."""
    sizes = dict(RUNS=RUNS, LONG_RUN=LONG_RUN, LONG_STEPS=LONG_STEPS, RUNNING=RUNNING, NODES=NODES, FIRST_JOB=FIRST_JOB,
                 each=(steps - LONG_STEPS) // (RUNS - 1))
    parts = [text.format(**sizes) for text in (RUN_ROWS, ATTEMPT_ROWS, STEP_ROWS, RECORD_ROWS, NODE_ROWS)]
    sql("; ".join(["set maintenance_work_mem = '256MB'; set session_replication_role = replica", *parts]))
    sql("analyze; insert into run_times (run_id) select id from runs where ended_at is not null")
    sql("vacuum analyze")
