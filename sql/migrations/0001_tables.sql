-- What WLB remembers. Units are in the names of columns; every time is timestamptz.

create table runs (
	id bigint generated always as identity primary key,
	name text not null,                      -- WLB_RUN_ID: "12", "12.2"; the newest row of a name is meant
	job_id bigint not null,
	launch integer not null default 1,       -- which `wlb run` of the job: 12 is 1, 12.2 is 2
	restart_count integer not null default 0,
	cluster text not null default '',
	job_name text not null default '',
	uid bigint not null,
	user_name text not null,
	state text not null default 'starting'
		check (state in ('starting', 'running', 'restarting', 'complete', 'failed', 'out_of_nodes', 'cancelled')),
	reason text not null default '',
	ended_by text check (ended_by in ('launcher', 'attempt', 'coordinator')),
	policy jsonb not null default '{}',
	model jsonb,
	seq_length_tokens bigint,
	global_batch_size bigint,
	train_iters bigint,
	submitted_at timestamptz,                -- null until Slurm was asked
	created_at timestamptz not null default now(),
	started_at timestamptz,
	ended_at timestamptz
);
create index on runs (name, id);
create index on runs (job_id, id);
create index on runs (user_name, id);
create index on runs (state, id);

create table attempts (
	id bigint generated always as identity primary key,
	run_id bigint not null references runs on delete cascade,
	number integer not null,
	uuid uuid not null unique,               -- WLB_ATTEMPT_ID
	state text not null default 'starting'
		check (state in ('starting', 'running', 'complete', 'failed', 'ended', 'lost')),
	reason text not null default '',
	launched boolean not null default false, -- by `wlb run`, which will say how it ended
	decision jsonb,                          -- the reply the launcher got, and gets again when it asks again
	nodes text[] not null default '{}',
	spares text[] not null default '{}',
	tp integer,
	cp integer,
	pp integer,
	dp integer,
	world_size integer,
	dtype text,
	device text,
	slurm_step text,
	resumed_step bigint,
	checkpoint_path text,
	new_steps bigint not null default 0,     -- steps that no earlier attempt had recorded
	exit_code integer,
	created_at timestamptz not null default now(),
	started_at timestamptz,
	ended_at timestamptz,
	unique (run_id, number)
);

create table rank_map (
	attempt_id bigint not null references attempts on delete cascade,
	rank integer not null,
	node text not null,
	local_rank integer not null,
	primary key (attempt_id, rank)
);

create table steps (
	run_id bigint not null references runs on delete cascade,
	step bigint not null,
	attempt_id bigint not null references attempts on delete cascade,
	loss double precision,
	grad_norm double precision,
	learning_rate double precision,
	tokens bigint,
	documents bigint,
	step_time_s double precision,
	tokens_per_s double precision,
	held_tokens bigint,                      -- read, and kept by the packer for a later step
	predicted_imbalance double precision,    -- heaviest rank x ranks / all ranks: of predicted work
	imbalance double precision,              -- the same, of seconds computed
	parts jsonb,                             -- where step_time_s went, mean over ranks: {"forward_s":0.2,...}
	recorded_at timestamptz not null,
	primary key (run_id, step)               -- every step of a run exactly once
);
create index on steps (attempt_id, step);

-- A step that a later attempt did again: the row it had before.
create table steps_superseded (like steps);
alter table steps_superseded
	add column superseded_at timestamptz not null default now(),
	add foreign key (run_id) references runs on delete cascade;
create index on steps_superseded (run_id, step);

create table checkpoints (
	id bigint generated always as identity primary key,
	run_id bigint not null references runs on delete cascade,
	attempt_id bigint not null references attempts on delete cascade,
	step bigint not null,
	path text not null,
	size_bytes bigint,
	duration_s double precision,
	recorded_at timestamptz not null
);
create index on checkpoints (run_id, step);

create table faults (
	id bigint generated always as identity primary key,
	run_id bigint not null references runs on delete cascade,
	attempt_id bigint not null references attempts on delete cascade,
	kind text not null
		check (kind in ('rank_lost', 'node_lost', 'step_failed', 'hang', 'slow_rank', 'slow_link')),
	rank integer,
	node text,
	peer_rank integer,                       -- of a link: its other end
	collective text,                         -- what was under way, for hang and slow verdicts
	step bigint,
	cost_s double precision,                 -- what the run lost by it, where that is known
	evidence jsonb,
	detail text not null default '',
	cause boolean not null default false,    -- what began it; the others followed from it
	detected_at timestamptz not null
);
create index on faults (run_id, id);
create index on faults (node, detected_at);
create unique index faults_one_cause on faults (attempt_id) where cause;
-- Launcher, ranks and wlbd may all tell of the same loss.
create unique index faults_loss_once on faults (attempt_id, kind, coalesce(node, ''), coalesce(rank, -1))
	where kind in ('rank_lost', 'node_lost', 'step_failed');

create table events (
	id bigint generated always as identity primary key,
	run_id bigint not null references runs on delete cascade,
	attempt_id bigint references attempts on delete cascade,
	kind text not null,
	detail text not null default '',
	recorded_at timestamptz not null
);
create index on events (run_id, id);

-- How far each source of records has been stored: what makes delivery exactly once.
create table sources (
	attempt_id bigint not null references attempts on delete cascade,
	source text not null,
	last_seq bigint not null default 0,
	updated_at timestamptz not null default now(),
	primary key (attempt_id, source)
);
