-- The tables, with the functions of their generated columns and triggers. Views and functions that may change with each version are in
-- sql/views and sql/functions.

create table schema_version (
	version integer primary key,
	file text not null,
	applied_at timestamptz not null default now()
);
comment on table schema_version is 'The files of sql/tables that wlb db migrate has applied';
comment on column schema_version.version is 'number of the file';
comment on column schema_version.file is 'name of the file';
comment on column schema_version.applied_at is 'when it was applied';

-- ---- runs ----------------------------------------------------------------------------------------------------------------

create table runs (
	id bigint generated always as identity primary key,
	name text not null,
	job_id bigint not null,
	launch integer not null default 1,
	restart_count integer not null default 0,
	cluster text not null default '',
	job_name text not null default '',
	uid bigint not null,
	user_name text not null,
	state text not null default 'starting'
		check (state in ('starting', 'running', 'restarting', 'complete', 'failed', 'out_of_nodes', 'cancelled')),
	reason text not null default '',
	ended_by text check (ended_by in ('launcher', 'attempt', 'coordinator', 'slurm')),
	policy jsonb not null default '{}',
	model jsonb,
	seq_length_tokens bigint,
	global_batch_size bigint,
	train_iters bigint,
	submitted_at timestamptz,
	created_at timestamptz not null default now(),
	started_at timestamptz,
	ended_at timestamptz,
	-- Sums over `steps`, updated by the transaction that stores a step.
	steps bigint not null default 0,
	first_step bigint,
	last_step bigint,
	first_loss double precision,
	last_loss double precision,
	tokens numeric not null default 0,
	step_seconds numeric not null default 0,
	steps_repeated bigint not null default 0,
	faults bigint not null default 0,
	-- A run that has more records than the bound loses the oldest.
	dropped_events bigint not null default 0,
	dropped_faults bigint not null default 0,
	dropped_checkpoints bigint not null default 0,
	dropped_evidence bigint not null default 0,
	confirmed boolean not null default false,
	requeues integer not null default 0,
	requeued_at timestamptz,
	dropped_verdicts bigint not null default 0,
	settings jsonb not null default '{}',
	job_over_restart_count integer,
	is_not_reached boolean not null default false,
	script_node_lost_after integer,
	launcher uuid,
	launcher_start integer,
	alias text
);
create index on runs (name, id);
create index on runs (alias, id) where alias is not null;
create index on runs (job_id, id);
create index on runs (user_name, id);
create index on runs (state, id);
create index on runs (uid, id);
create index on runs (uid) where not confirmed and state in ('starting', 'running', 'restarting');
create index on runs (uid, job_id) where state in ('starting', 'running', 'restarting');
create index on runs (ended_at) where job_over_restart_count is null or job_over_restart_count < restart_count;
comment on table runs is 'Training runs: each wlb run of a job''s script; what belongs to a run is deleted with it';
comment on column runs.id is 'key';
comment on column runs.name is 'WLB_RUN_ID, 12 or 12.2: the newest row of a name is meant';
comment on column runs.job_id is 'the Slurm job';
comment on column runs.launch is 'which wlb run of the job: 12 is 1, 12.2 is 2';
comment on column runs.restart_count is 'how often Slurm has started the job again';
comment on column runs.cluster is 'Slurm''s ClusterName';
comment on column runs.job_name is 'the job''s name';
comment on column runs.uid is 'the owner''s uid';
comment on column runs.user_name is 'the owner''s name';
comment on column runs.state is 'starting, running, restarting, complete, failed, out_of_nodes or cancelled';
comment on column runs.reason is 'why it ended so, 4,096 characters at most; empty: complete, or not ended';
comment on column runs.ended_by is 'what told the end: launcher, attempt (rank 0), coordinator (wlbd) or slurm';
comment on column runs.policy is 'options of the job, as --wlb-on-fault, with the settings above them';
comment on column runs.model is 'the model, as rank 0 reported it';
comment on column runs.seq_length_tokens is 'length of a sequence, tokens';
comment on column runs.global_batch_size is 'sequences of a step';
comment on column runs.train_iters is 'steps that the whole run is to do';
comment on column runs.submitted_at is 'when the job was submitted first; null until Slurm was asked';
comment on column runs.created_at is 'when it was announced';
comment on column runs.started_at is 'when its processes were first there';
comment on column runs.ended_at is 'when it ended; null: it goes on';
comment on column runs.steps is 'rows in steps';
comment on column runs.first_step is 'first step that is recorded';
comment on column runs.last_step is 'last step that is recorded';
comment on column runs.first_loss is 'loss of first_step';
comment on column runs.last_loss is 'loss of last_step';
comment on column runs.tokens is 'tokens of its steps';
comment on column runs.step_seconds is 'time of its steps, s';
comment on column runs.steps_repeated is 'rows in steps_superseded';
comment on column runs.faults is 'rows in faults';
comment on column runs.dropped_events is 'events removed, since a run keeps 10,000';
comment on column runs.dropped_faults is 'faults removed, since a run keeps 10,000';
comment on column runs.dropped_checkpoints is 'checkpoints removed, since a run keeps 10,000';
comment on column runs.dropped_evidence is 'faults whose evidence was removed, since a run keeps 4 MiB';
comment on column runs.confirmed is 'Slurm knows the job, and that it is the owner''s';
comment on column runs.requeues is 'how often wlbd had the job requeued';
comment on column runs.requeued_at is 'when the job was last requeued';
comment on column runs.dropped_verdicts is 'verdicts removed, since a run keeps 1,000';
comment on column runs.settings is 'what wlb set has changed of the policy';
comment on column runs.job_over_restart_count is 'restart_count of the start of the job that has ended; null: none';
comment on column runs.is_not_reached is 'the job has started again, and its script has come to an earlier run only';
comment on column runs.script_node_lost_after is 'number of the attempt after which a complete run lost the node of its job''s script; null: none';
comment on column runs.launcher is 'the first attempt_id of the wlb run that the run is of; null: none has said';
comment on column runs.launcher_start is 'restart_count of the job when that wlb run began';
comment on column runs.alias is 'the name with the job as Slurm shows it, 15_2.2 or 15+1; null: as name';

-- ---- attempts ------------------------------------------------------------------------------------------------------------

-- A list of runs reads the names of every run's nodes, whoever named them: their number and size are kept beside them.
create function wlb_names_bytes(p_names text[]) returns integer language sql immutable as $$
	select octet_length(to_json(p_names)::text)
$$;

create table attempts (
	id bigint generated always as identity primary key,
	run_id bigint not null references runs on delete cascade,
	number integer not null,
	uuid uuid not null unique,
	state text not null default 'starting'
		check (state in ('starting', 'running', 'complete', 'failed', 'ended', 'lost')),
	reason text not null default '',
	launched boolean not null default false,
	decision jsonb,
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
	new_steps bigint not null default 0,
	exit_code integer,
	created_at timestamptz not null default now(),
	started_at timestamptz,
	ended_at timestamptz,
	told text not null default '',
	launcher_told boolean not null default false,
	plan jsonb,
	memory_bytes bigint,
	gpus jsonb,
	held_nodes integer,
	reported_at timestamptz,
	step_seconds numeric not null default 0,
	repeated_seconds numeric not null default 0,
	checkpoint_seconds numeric not null default 0,
	node_reported boolean not null default false,
	resized_to integer,
	node_count integer generated always as (cardinality(nodes)) stored,
	nodes_bytes integer generated always as (wlb_names_bytes(nodes)) stored,
	queued_again boolean not null default false,
	reported_step bigint,
	unique (run_id, number)
);
comment on table attempts is 'Attempts of runs: each start of the training program';
comment on column attempts.id is 'key';
comment on column attempts.run_id is 'the run''s id in runs';
comment on column attempts.number is '1 is the run''s first';
comment on column attempts.uuid is 'WLB_ATTEMPT_ID';
comment on column attempts.state is 'starting, running, complete, failed, ended (by order) or lost';
comment on column attempts.reason is 'why it ended so, 4,096 characters at most; empty: complete, not ended, or not known yet';
comment on column attempts.launched is 'by wlb run, which will say how it ended';
comment on column attempts.decision is 'the reply the launcher got, and gets again when it asks again; null: it began while wlbd was away';
comment on column attempts.nodes is 'names of the nodes with ranks, in the order of ranks';
comment on column attempts.spares is 'names of the job''s nodes that are held back';
comment on column attempts.tp is 'ranks of tensor parallelism';
comment on column attempts.cp is 'ranks of context parallelism';
comment on column attempts.pp is 'stages of pipeline parallelism';
comment on column attempts.dp is 'replicas of data parallelism';
comment on column attempts.world_size is 'ranks; null: rank 0 has not recorded itself';
comment on column attempts.dtype is 'type of the numbers computed with';
comment on column attempts.device is 'cuda or cpu';
comment on column attempts.slurm_step is 'the job step, 12.0';
comment on column attempts.resumed_step is 'step of the checkpoint it resumed from; null: none';
comment on column attempts.checkpoint_path is 'path of the checkpoint it resumed from';
comment on column attempts.new_steps is 'steps that no earlier attempt had recorded';
comment on column attempts.exit_code is 'exit code of its step';
comment on column attempts.created_at is 'when it was asked for';
comment on column attempts.started_at is 'when its processes were first there';
comment on column attempts.ended_at is 'when it ended; null: it goes on';
comment on column attempts.told is 'the reason that was given for its end, 4,096 characters at most';
comment on column attempts.launcher_told is 'its launcher reported how it ended';
comment on column attempts.plan is 'why this layout: docs/api.md, records of type plan';
comment on column attempts.memory_bytes is 'the most that a rank has allocated on its device, bytes';
comment on column attempts.gpus is 'docs/api.md, records of type gpus, without devices';
comment on column attempts.held_nodes is 'nodes of the job that could work when it began; null: not known';
comment on column attempts.reported_at is 'when rank 0 recorded itself first; null: never';
comment on column attempts.step_seconds is 'time of its rows in steps, s';
comment on column attempts.repeated_seconds is 'time of its rows in steps_superseded, s';
comment on column attempts.checkpoint_seconds is 'time of its checkpoints, also those removed since, s';
comment on column attempts.node_reported is 'a node of it has reported: its step was launched';
comment on column attempts.resized_to is 'the least number of nodes on which wlbd has let its job start again; null: not changed';
comment on column attempts.node_count is 'number of nodes';
comment on column attempts.nodes_bytes is 'length of nodes as JSON, bytes';
comment on column attempts.queued_again is 'Slurm ended it to queue its job again, and no fault did';
comment on column attempts.reported_step is 'the highest step that a node had reported when it ended';

create table rank_map (
	attempt_id bigint not null references attempts on delete cascade,
	rank integer not null,
	node text not null,
	local_rank integer not null,
	device integer,
	primary key (attempt_id, rank)
);
comment on table rank_map is 'Where the ranks of attempts are';
comment on column rank_map.attempt_id is 'the attempt''s id in attempts';
comment on column rank_map.rank is 'the rank';
comment on column rank_map.node is 'name of its node';
comment on column rank_map.local_rank is 'its number on the node';
comment on column rank_map.device is 'number of its GPU among those that it sees; null: on the CPU, or not reported';

-- ---- records -------------------------------------------------------------------------------------------------------------

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
	held_tokens bigint,
	predicted_imbalance double precision,
	imbalance double precision,
	parts jsonb,
	recorded_at timestamptz not null,
	primary key (run_id, step)
);
create index on steps (attempt_id, step);
create index on steps (run_id, recorded_at);
create index on steps using brin (recorded_at);
comment on table steps is 'Every step of a run, exactly once: as the newest attempt did it';
comment on column steps.run_id is 'the run''s id in runs';
comment on column steps.step is 'number of the step; the first is 1';
comment on column steps.attempt_id is 'the attempt''s id in attempts';
comment on column steps.loss is 'mean loss of a token';
comment on column steps.grad_norm is 'norm of the gradient';
comment on column steps.learning_rate is 'learning rate';
comment on column steps.tokens is 'tokens trained on';
comment on column steps.documents is 'documents trained on';
comment on column steps.step_time_s is 'time of the step, s';
comment on column steps.tokens_per_s is 'tokens in a second';
comment on column steps.held_tokens is 'tokens read, and kept by the packer for a later step';
comment on column steps.predicted_imbalance is 'heaviest rank x ranks / all ranks: of predicted work';
comment on column steps.imbalance is 'heaviest rank x ranks / all ranks: of seconds computed';
comment on column steps.parts is 'where step_time_s went, s, mean over ranks: {"forward_s":0.2,...}';
comment on column steps.recorded_at is 'when it ended, by the clock of rank 0';

create table steps_superseded (
	like steps including comments,
	superseded_at timestamptz not null default now(),
	foreign key (run_id) references runs on delete cascade
);
create index on steps_superseded (run_id, step);
create index on steps_superseded (attempt_id, step);
create index on steps_superseded (run_id, recorded_at);
comment on table steps_superseded is 'Steps that a later attempt did again: the rows that they had before';
comment on column steps_superseded.superseded_at is 'when the step was stored again';

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
create index on checkpoints (attempt_id);
create index on checkpoints (run_id, recorded_at);
comment on table checkpoints is 'Checkpoints that runs have written';
comment on column checkpoints.id is 'key';
comment on column checkpoints.run_id is 'the run''s id in runs';
comment on column checkpoints.attempt_id is 'the attempt''s id in attempts';
comment on column checkpoints.step is 'the last step that is in it';
comment on column checkpoints.path is 'its folder';
comment on column checkpoints.size_bytes is 'its size, bytes';
comment on column checkpoints.duration_s is 'time that the ranks waited for it, s';
comment on column checkpoints.recorded_at is 'when it was complete, by the clock of rank 0';

create table events (
	id bigint generated always as identity primary key,
	run_id bigint not null references runs on delete cascade,
	attempt_id bigint references attempts on delete cascade,
	kind text not null,
	detail text not null default '',
	recorded_at timestamptz not null
);
create index on events (run_id, id);
create index on events (attempt_id);
create unique index events_once on events (run_id, kind, recorded_at, md5(detail)); -- also when it is reported twice
comment on table events is 'What happened in runs besides faults';
comment on column events.id is 'key';
comment on column events.run_id is 'the run''s id in runs';
comment on column events.attempt_id is 'the attempt''s id in attempts; null: of none';
comment on column events.kind is 'what happened: docs/api.md, records of type event';
comment on column events.detail is 'what happened, for people';
comment on column events.recorded_at is 'when it happened';

create table sources (
	attempt_id bigint not null references attempts on delete cascade,
	source text not null,
	last_seq bigint not null default 0,
	updated_at timestamptz not null default now(),
	primary key (attempt_id, source)
);
comment on table sources is 'How far each source of records has been stored: what makes delivery exactly once';
comment on column sources.attempt_id is 'the attempt''s id in attempts';
comment on column sources.source is 'the client: run (the launcher), or a rank';
comment on column sources.last_seq is 'number of the last record that is stored';
comment on column sources.updated_at is 'when it was stored';

-- ---- faults and verdicts -------------------------------------------------------------------------------------------------

create table faults (
	id bigint generated always as identity primary key,
	run_id bigint not null references runs on delete cascade,
	attempt_id bigint not null references attempts on delete cascade,
	kind text not null check (kind in ('rank_lost', 'node_lost', 'step_failed', 'launcher_lost', 'script_lost', 'hang',
		'slow_rank', 'slow_node', 'slow_link', 'slow_loader', 'bad_values')),
	rank integer,
	node text,
	peer_rank integer,
	collective text,
	step bigint,
	cost_s double precision,
	evidence jsonb,
	detail text not null default '',
	cause boolean not null default false,
	detected_at timestamptz not null,
	-- What wlbd decides by, where `evidence` is what clients reported:
	--   exit_code    rank_lost: how its process ended, 128 + signal; absent if that was concluded from its connection
	--   first        rank_lost: srun saw that rank end before all others
	--   alive_at     node_lost: when wlbd last knew that the node was alive, seconds since 1970
	--   seen         node_lost: wlbd itself asked the node, which did not answer
	--   job_unknown  node_lost: Slurm has not said to wlbd, since its start, that the node is the job's
	--   job_over     node_lost: Slurm had said before the loss that the job has ended, or is unknown
	--   after_end    node_lost: the node had ended its tasks
	--   step_broken  step_failed: srun or a slurmstepd was killed
	--   during       launcher_lost, script_lost: seconds since 1970; absent if the time is not known
	--   evicted      wlbd ended the attempt because of it: the reason
	proof jsonb
);
create index on faults (run_id, id);
create index on faults (node, detected_at);
create index on faults (attempt_id);
create index on faults (detected_at, id);
create index on faults (attempt_id) where proof ? 'evicted';
create index on faults (detected_at) where kind = 'node_lost' and proof ? 'seen';
create index on faults (detected_at) where proof ? 'evicted';
create unique index faults_one_cause on faults (attempt_id) where cause;
-- Launcher, ranks and wlbd may all tell of the same loss.
create unique index faults_loss_once on faults (attempt_id, kind, coalesce(node, ''), coalesce(rank, -1))
	where kind in ('rank_lost', 'node_lost', 'step_failed', 'launcher_lost', 'script_lost');
comment on table faults is 'What broke attempts or slowed them, as clients reported it and as wlbd found it';
comment on column faults.id is 'key';
comment on column faults.run_id is 'the run''s id in runs';
comment on column faults.attempt_id is 'the attempt''s id in attempts';
comment on column faults.kind is 'rank_lost, node_lost, step_failed, launcher_lost, script_lost, hang, slow_rank, slow_node, slow_link, slow_loader or bad_values';
comment on column faults.rank is 'the rank; null: of none';
comment on column faults.node is 'name of the node; null: of none, or not known';
comment on column faults.peer_rank is 'of a link: its other end';
comment on column faults.collective is 'what was under way';
comment on column faults.step is 'the step in which it was';
comment on column faults.cost_s is 'what the run lost by it, s; null: not known';
comment on column faults.evidence is 'what the client reported';
comment on column faults.detail is 'what is known, for people';
comment on column faults.cause is 'it broke the attempt; the others followed from it';
comment on column faults.detected_at is 'when it was noticed';
comment on column faults.proof is 'what wlbd decides by: sql/tables/0001.sql has the keys';

create table verdicts (
	id bigint generated always as identity primary key,
	run_id bigint not null references runs on delete cascade,
	attempt_id bigint not null references attempts on delete cascade,
	watcher bigint not null,
	number bigint not null,
	kind text not null check (kind in ('crash', 'hang', 'hang_in_communication', 'deadlock', 'slow_compute', 'slow_node',
		'slow_link', 'slow_nic', 'slow_loader', 'slow_storage', 'bad_values', 'stack_outliers')),
	state text not null check (state in ('suspected', 'confirmed', 'over')),
	ranks integer[] not null default '{}',
	rank_count integer not null default 0,
	nodes text[] not null default '{}',
	collective text,
	sequence bigint,
	step bigint,
	cost_percent double precision,
	certainty double precision not null,
	evidence text not null,
	action text not null check (action in ('report', 'evict')),
	began_at timestamptz not null,
	found_at timestamptz not null,
	confirmed_at timestamptz,
	over_at timestamptz,
	calls json not null default '[]',
	unique (attempt_id, watcher, number)
);
create index on verdicts (run_id, id);
create index on verdicts using gin (nodes);
create index on verdicts (found_at, id);
comment on table verdicts is 'What wlbd finds from the timings of ranks';
comment on column verdicts.id is 'key';
comment on column verdicts.run_id is 'the run''s id in runs';
comment on column verdicts.attempt_id is 'the attempt''s id in attempts';
comment on column verdicts.watcher is 'the start of wlbd that found it, milliseconds since 1970';
comment on column verdicts.number is 'its number in that start of wlbd and that attempt';
comment on column verdicts.kind is 'docs/verdicts.md';
comment on column verdicts.state is 'suspected, confirmed or over';
comment on column verdicts.ranks is 'the first 16 ranks; of a pair: source, destination';
comment on column verdicts.rank_count is 'number of all its ranks';
comment on column verdicts.nodes is 'names of the nodes of these ranks';
comment on column verdicts.collective is 'the communicator';
comment on column verdicts.sequence is 'number of its call';
comment on column verdicts.step is 'the step since which it is so';
comment on column verdicts.cost_percent is 'what the run loses by it, % of the time of a step; null: not known';
comment on column verdicts.certainty is '0 to 1';
comment on column verdicts.evidence is 'what it was concluded from, for people';
comment on column verdicts.action is 'what is done: report or evict';
comment on column verdicts.began_at is 'when it began, as far as reports tell';
comment on column verdicts.found_at is 'when it was suspected or confirmed first';
comment on column verdicts.confirmed_at is 'when it was confirmed; null: it was not';
comment on column verdicts.over_at is 'when it was over; null: it is not';
comment on column verdicts.calls is 'calls that groups of ranks are in: docs/api.md';

create table stack_gatherings (
	attempt_id bigint not null references attempts on delete cascade,
	stacks_id bigint not null,
	asked_at timestamptz not null default now(),
	nodes_asked integer not null,
	size_bytes bigint not null default 0,
	primary key (attempt_id, stacks_id)
);
comment on table stack_gatherings is 'Gatherings of the stacks of all ranks of an attempt';
comment on column stack_gatherings.attempt_id is 'the attempt''s id in attempts';
comment on column stack_gatherings.stacks_id is 'its number, which rises within an attempt';
comment on column stack_gatherings.asked_at is 'when the nodes were asked';
comment on column stack_gatherings.nodes_asked is 'number of nodes asked';
comment on column stack_gatherings.size_bytes is 'size of its stacks, bytes';

create table stacks (
	attempt_id bigint not null,
	stacks_id bigint not null,
	node text not null,
	rank integer not null,
	entry json not null,
	primary key (attempt_id, stacks_id, rank),
	foreign key (attempt_id, stacks_id) references stack_gatherings on delete cascade
);
create index on stacks (attempt_id, stacks_id, node);
comment on table stacks is 'Stacks of the threads of ranks';
comment on column stacks.attempt_id is 'the attempt''s id in attempts';
comment on column stacks.stacks_id is 'number of the gathering';
comment on column stacks.node is 'name of the rank''s node';
comment on column stacks.rank is 'the rank';
comment on column stacks.entry is 'docs/api.md, POST /v1/runs/RUN/stacks, an entry of ranks';

-- ---- times in which a job holds no nodes ---------------------------------------------------------------------------------

create table queue_waits (
	id bigint generated always as identity primary key,
	run_id bigint not null references runs on delete cascade,
	began_at timestamptz not null,
	ended_at timestamptz
);
create index on queue_waits (run_id, id);
comment on table queue_waits is 'Times in which the job of a run waited in the queue to start again';
comment on column queue_waits.id is 'key';
comment on column queue_waits.run_id is 'the run''s id in runs';
comment on column queue_waits.began_at is 'when it was queued, or the run ended before that';
comment on column queue_waits.ended_at is 'when the job announced itself again; null: it has not';

create table suspensions (
	id bigint generated always as identity primary key,
	run_id bigint not null references runs on delete cascade,
	began_at timestamptz not null,
	ended_at timestamptz
);
create index on suspensions (run_id, id);
comment on table suspensions is 'Times in which the job of a run was suspended';
comment on column suspensions.id is 'key';
comment on column suspensions.run_id is 'the run''s id in runs';
comment on column suspensions.began_at is 'when it was suspended';
comment on column suspensions.ended_at is 'when it was resumed; null: it is suspended';

-- ---- nodes and calibrations ----------------------------------------------------------------------------------------------

create table node_checks (
	id bigint generated always as identity primary key,
	node text not null,
	healthy boolean not null,
	reason text not null default '',
	checks json not null default '[]',
	clears boolean not null default false,
	uid bigint not null,
	checked_at timestamptz not null default now(),
	failed text[] not null default '{}',
	passed text[]
);
create index on node_checks (node, checked_at);
comment on table node_checks is 'Checks of nodes by root or SlurmUser, which count for all runs';
comment on column node_checks.id is 'key';
comment on column node_checks.node is 'name of the node';
comment on column node_checks.healthy is 'nothing failed';
comment on column node_checks.reason is 'what failed first, for people';
comment on column node_checks.checks is 'docs/api.md, POST /v1/node_checks';
comment on column node_checks.clears is 'the node was repaired: what was known before counts no more';
comment on column node_checks.uid is 'uid of root or SlurmUser';
comment on column node_checks.checked_at is 'when it was reported last';
comment on column node_checks.failed is 'kinds of checks that failed, the one of the reason first';
comment on column node_checks.passed is 'kinds of checks that are ok; null: all that was known before is ended';

create table run_node_checks (
	id bigint generated always as identity primary key,
	run_id bigint not null references runs on delete cascade,
	attempt_id bigint not null references attempts on delete cascade,
	node text not null,
	healthy boolean not null,
	reason text not null default '',
	checks json not null default '[]',
	checked_at timestamptz not null default now(),
	unique (attempt_id, node)
);
create index on run_node_checks (run_id, node);
create index on run_node_checks (checked_at) where not healthy;
create index on run_node_checks (node, checked_at) where not healthy;
comment on table run_node_checks is 'Checks of nodes that an attempt leaves out, by its launcher; they are a user''s, and count for the run alone';
comment on column run_node_checks.id is 'key';
comment on column run_node_checks.run_id is 'the run''s id in runs';
comment on column run_node_checks.attempt_id is 'the attempt''s id in attempts';
comment on column run_node_checks.node is 'name of the node';
comment on column run_node_checks.healthy is 'nothing failed: the next attempt may use it';
comment on column run_node_checks.reason is 'what failed first, for people';
comment on column run_node_checks.checks is 'docs/api.md, POST /v1/node_checks';
comment on column run_node_checks.checked_at is 'when it was reported';

create table calibrations (
	id bigint generated always as identity primary key,
	at timestamptz not null default now(),
	node_type text not null check (node_type <> '' and length(node_type) <= 128),
	ranks_per_node integer not null check (ranks_per_node between 1 and 4096),
	uid bigint not null,
	is_admin boolean not null,
	job_id bigint,
	nodes text[] not null,
	machine jsonb not null,
	speeds float8[] not null
);
create index calibrations_by_type on calibrations (node_type, uid, id desc);
create index calibrations_by_user on calibrations (uid, id desc);
comment on table calibrations is 'Machines as users measured them; the newest 64 of each user';
comment on column calibrations.id is 'key';
comment on column calibrations.at is 'when it was stored';
comment on column calibrations.node_type is 'type of the nodes';
comment on column calibrations.ranks_per_node is 'ranks on each node';
comment on column calibrations.uid is 'uid of who measured';
comment on column calibrations.is_admin is 'root or SlurmUser stored it';
comment on column calibrations.job_id is 'the Slurm job; null: an administrator measured outside a job';
comment on column calibrations.nodes is 'names of the nodes, as the client names them';
comment on column calibrations.machine is 'the machine file, which wlbd has read and checked';
comment on column calibrations.speeds is 'by which calibrations are compared: products, FLOP/s; attention, FLOP/s; memory, bytes/s';

-- ---- triggers ------------------------------------------------------------------------------------------------------------

-- Several functions insert faults: a trigger updates the run's count for all of them.
create function wlb_faults_count() returns trigger language plpgsql as $$
begin
	update runs r set faults = r.faults + x.count * case when tg_op = 'INSERT' then 1 else -1 end
	from (select run_id, count(*) from changed group by run_id) as x where x.run_id = r.id;
	return null;
end $$;
create trigger faults_added after insert on faults referencing new table as changed
	for each statement execute function wlb_faults_count();
create trigger faults_removed after delete on faults referencing old table as changed
	for each statement execute function wlb_faults_count();

create function wlb_attempt_has_ended() returns trigger language plpgsql as $$
begin
	perform wlb_verdicts_end(new.id, new.ended_at);
	return null;
end $$;
create trigger attempts_end_verdicts after update of ended_at on attempts
	for each row when (old.ended_at is null and new.ended_at is not null) execute function wlb_attempt_has_ended();

-- Several functions store options of the job in `policy`, for example when it is queued again: the trigger keeps the
-- settings above them.
create function wlb_settings_prevail() returns trigger language plpgsql as $$
begin
	new.policy := new.policy || jsonb_build_object('on_fault',
		wlb_items_merge(new.policy->>'on_fault', new.settings->>'on_fault'));
	return new;
end $$;
create trigger runs_settings_prevail before update of policy, settings on runs
	for each row when (new.settings ? 'on_fault') execute function wlb_settings_prevail();

create function wlb_checkpoint_added() returns trigger language plpgsql as $$
begin
	update attempts set checkpoint_seconds = checkpoint_seconds + wlb_seconds(new.duration_s) where id = new.attempt_id;
	return null;
end $$;
create trigger checkpoints_added after insert on checkpoints for each row execute function wlb_checkpoint_added();

-- A wait begins when wlbd has the job queued again, or sees it queued; where the run was over by then, it begins at the run's end,
-- since what the job did after it was not the run's. Where it was neither, it begins when the run or its last attempt ended, if
-- either did. It ends when the job announces itself with a greater count of restarts.
create function wlb_queue_wait_note() returns trigger language plpgsql as $$
declare
	since timestamptz;
begin
	if new.requeued_at is distinct from old.requeued_at then
		if not exists (select from queue_waits where run_id = new.id and ended_at is null) then
			insert into queue_waits (run_id, began_at) values (new.id, least(new.requeued_at, old.ended_at));
		end if;
	else
		update queue_waits set ended_at = now() where run_id = new.id and ended_at is null;
		if not found then
			since := wlb_queue_wait_since(new.id, old.ended_at);
			insert into queue_waits (run_id, began_at, ended_at) select new.id, since, now() where since < now();
		end if;
	end if;
	perform wlb_queue_waits_trim(new.id);
	return null;
end $$;
create trigger runs_queue_waits after update of requeued_at, restart_count on runs
	for each row when (new.requeued_at is distinct from old.requeued_at or new.restart_count > old.restart_count)
	execute function wlb_queue_wait_note();

create function wlb_run_reason_cut() returns trigger language plpgsql as $$
begin
	new.reason := left(new.reason, 4096);
	return new;
end $$;
create trigger runs_reason_cut before insert or update of reason on runs
	for each row when (length(new.reason) > 4096) execute function wlb_run_reason_cut();

create function wlb_attempt_reason_cut() returns trigger language plpgsql as $$
begin
	new.reason := left(new.reason, 4096);
	new.told := left(new.told, 4096);
	return new;
end $$;
create trigger attempts_reason_cut before insert or update of reason, told on attempts
	for each row when (length(new.reason) > 4096 or length(new.told) > 4096) execute function wlb_attempt_reason_cut();

-- The script has come to a run of which an attempt begins, whatever another launcher announced between its own announcement and that.
create function wlb_run_is_reached() returns trigger language plpgsql as $$
begin
	update runs set is_not_reached = false where id = new.run_id and is_not_reached;
	return null;
end $$;
create trigger attempts_run_is_reached after insert on attempts for each row execute function wlb_run_is_reached();
