-- The tables that sql/tables makes, as pg_dump -s prints them; scripts/schema writes this file.
CREATE FUNCTION public.wlb_attempt_has_ended() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
	perform wlb_verdicts_end(new.id, new.ended_at);
	return null;
end $$;
CREATE FUNCTION public.wlb_attempt_reason_cut() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
	new.reason := left(new.reason, 4096);
	new.told := left(new.told, 4096);
	return new;
end $$;
CREATE FUNCTION public.wlb_checkpoint_added() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
	update attempts set checkpoint_seconds = checkpoint_seconds + wlb_seconds(coalesce(new.stall_s, new.duration_s))
	where id = new.attempt_id;
	return null;
end $$;
CREATE FUNCTION public.wlb_faults_count() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
	update runs r set faults = r.faults + x.count * case when tg_op = 'INSERT' then 1 else -1 end
	from (select run_id, count(*) from changed group by run_id) as x where x.run_id = r.id;
	return null;
end $$;
CREATE FUNCTION public.wlb_names_bytes(p_names text[]) RETURNS integer
    LANGUAGE sql IMMUTABLE
    AS $$
	select octet_length(to_json(p_names)::text)
$$;
CREATE FUNCTION public.wlb_of_run_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
	perform wlb_run_time_stale(new.run_id);
	return null;
end $$;
CREATE FUNCTION public.wlb_queue_wait_note() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION public.wlb_run_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
	if new.ended_at is null then
		delete from run_times where run_id = new.id;
	end if;
	perform wlb_run_time_stale(new.id);
	return null;
end $$;
CREATE FUNCTION public.wlb_run_is_reached() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
	update runs set is_not_reached = false where id = new.run_id and is_not_reached;
	return null;
end $$;
CREATE FUNCTION public.wlb_run_reason_cut() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
	new.reason := left(new.reason, 4096);
	return new;
end $$;
CREATE FUNCTION public.wlb_run_time_keep() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
	update run_times k set (held_s, effective_s, detect_s, decide_s, start_s, load_s, repeated_s, checkpoint_s, idle_s, other_s, is_recorded)
		= (select held_s, effective_s, detect_s, decide_s, start_s, load_s, repeated_s, checkpoint_s, idle_s, other_s, is_recorded
			from wlb_run_time(k.run_id)) where run_id = new.run_id and held_s is null;
	return null;
end $$;
CREATE FUNCTION public.wlb_run_time_stale(p_run bigint) RETURNS void
    LANGUAGE sql
    AS $$
	insert into run_times (run_id) select id from runs where id = p_run and ended_at is not null
	on conflict (run_id) do update set held_s = null where run_times.held_s is not null
$$;
CREATE FUNCTION public.wlb_settings_prevail() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
	new.policy := new.policy || jsonb_build_object('on_fault',
		wlb_items_merge(new.policy->>'on_fault', new.settings->>'on_fault'));
	return new;
end $$;
CREATE TABLE public.attempts (
    id bigint NOT NULL,
    run_id bigint NOT NULL,
    number integer NOT NULL,
    uuid uuid NOT NULL,
    state text DEFAULT 'starting'::text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    launched boolean DEFAULT false NOT NULL,
    decision jsonb,
    nodes text[] DEFAULT '{}'::text[] NOT NULL,
    spares text[] DEFAULT '{}'::text[] NOT NULL,
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
    new_steps bigint DEFAULT 0 NOT NULL,
    exit_code integer,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    told text DEFAULT ''::text NOT NULL,
    launcher_told boolean DEFAULT false NOT NULL,
    plan jsonb,
    memory_bytes bigint,
    gpus jsonb,
    held_nodes integer,
    reported_at timestamp with time zone,
    step_seconds numeric DEFAULT 0 NOT NULL,
    repeated_seconds numeric DEFAULT 0 NOT NULL,
    checkpoint_seconds numeric DEFAULT 0 NOT NULL,
    node_reported boolean DEFAULT false NOT NULL,
    resized_to integer,
    node_count integer GENERATED ALWAYS AS (cardinality(nodes)) STORED,
    nodes_bytes integer GENERATED ALWAYS AS (public.wlb_names_bytes(nodes)) STORED,
    queued_again boolean DEFAULT false NOT NULL,
    reported_step bigint,
    goes_on boolean DEFAULT false NOT NULL,
    step_of_attempt bigint,
    saves_on_request boolean DEFAULT false NOT NULL,
    CONSTRAINT attempts_state_check CHECK ((state = ANY (ARRAY['starting'::text, 'running'::text, 'complete'::text, 'failed'::text, 'ended'::text, 'lost'::text])))
);
CREATE TABLE public.calibrations (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    node_type text NOT NULL,
    ranks_per_node integer NOT NULL,
    uid bigint NOT NULL,
    is_admin boolean NOT NULL,
    job_id bigint,
    nodes text[] NOT NULL,
    machine jsonb NOT NULL,
    speeds double precision[] NOT NULL,
    CONSTRAINT calibrations_node_type_check CHECK (((node_type <> ''::text) AND (length(node_type) <= 128))),
    CONSTRAINT calibrations_ranks_per_node_check CHECK (((ranks_per_node >= 1) AND (ranks_per_node <= 4096)))
);
CREATE TABLE public.runs (
    id bigint NOT NULL,
    name text NOT NULL,
    job_id bigint NOT NULL,
    launch integer DEFAULT 1 NOT NULL,
    restart_count integer DEFAULT 0 NOT NULL,
    cluster text DEFAULT ''::text NOT NULL,
    job_name text DEFAULT ''::text NOT NULL,
    uid bigint NOT NULL,
    user_name text NOT NULL,
    state text DEFAULT 'starting'::text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    ended_by text,
    policy jsonb DEFAULT '{}'::jsonb NOT NULL,
    model jsonb,
    seq_length_tokens bigint,
    global_batch_size bigint,
    train_iters bigint,
    submitted_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    steps bigint DEFAULT 0 NOT NULL,
    first_step bigint,
    last_step bigint,
    first_loss double precision,
    last_loss double precision,
    tokens numeric DEFAULT 0 NOT NULL,
    step_seconds numeric DEFAULT 0 NOT NULL,
    steps_repeated bigint DEFAULT 0 NOT NULL,
    faults bigint DEFAULT 0 NOT NULL,
    dropped_events bigint DEFAULT 0 NOT NULL,
    dropped_faults bigint DEFAULT 0 NOT NULL,
    dropped_checkpoints bigint DEFAULT 0 NOT NULL,
    dropped_evidence bigint DEFAULT 0 NOT NULL,
    confirmed boolean DEFAULT false NOT NULL,
    requeues integer DEFAULT 0 NOT NULL,
    requeued_at timestamp with time zone,
    dropped_verdicts bigint DEFAULT 0 NOT NULL,
    settings jsonb DEFAULT '{}'::jsonb NOT NULL,
    job_over_restart_count integer,
    is_not_reached boolean DEFAULT false NOT NULL,
    script_node_lost_after integer,
    launcher uuid,
    launcher_start integer,
    alias text,
    dropped_values bigint DEFAULT 0 NOT NULL,
    is_followed boolean DEFAULT false NOT NULL,
    account text,
    gpu_count bigint,
    CONSTRAINT runs_ended_by_check CHECK ((ended_by = ANY (ARRAY['launcher'::text, 'attempt'::text, 'coordinator'::text, 'slurm'::text]))),
    CONSTRAINT runs_state_check CHECK ((state = ANY (ARRAY['starting'::text, 'running'::text, 'restarting'::text, 'complete'::text, 'failed'::text, 'out_of_nodes'::text, 'cancelled'::text])))
);
CREATE TABLE public.faults (
    id bigint NOT NULL,
    run_id bigint NOT NULL,
    attempt_id bigint NOT NULL,
    kind text NOT NULL,
    rank integer,
    node text,
    peer_rank integer,
    collective text,
    step bigint,
    cost_s double precision,
    evidence jsonb,
    detail text DEFAULT ''::text NOT NULL,
    cause boolean DEFAULT false NOT NULL,
    detected_at timestamp with time zone NOT NULL,
    proof jsonb,
    is_loss boolean DEFAULT false NOT NULL,
    sentence text DEFAULT ''::text NOT NULL,
    strength smallint,
    late interval DEFAULT '00:00:00'::interval NOT NULL,
    follow interval,
    killed_at timestamp with time zone,
    lost_from timestamp with time zone
);
CREATE TABLE public.node_checks (
    id bigint NOT NULL,
    node text NOT NULL,
    healthy boolean NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    checks json DEFAULT '[]'::json NOT NULL,
    clears boolean DEFAULT false NOT NULL,
    uid bigint NOT NULL,
    checked_at timestamp with time zone DEFAULT now() NOT NULL,
    failed text[] DEFAULT '{}'::text[] NOT NULL,
    passed text[]
);
CREATE TABLE public.steps (
    run_id bigint NOT NULL,
    step bigint NOT NULL,
    attempt_id bigint NOT NULL,
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
    recorded_at timestamp with time zone NOT NULL,
    span_steps bigint DEFAULT 1 NOT NULL,
    loss_tokens bigint,
    global_batch_size bigint
);
CREATE TABLE public.verdicts (
    id bigint NOT NULL,
    run_id bigint NOT NULL,
    attempt_id bigint NOT NULL,
    watcher bigint NOT NULL,
    number bigint NOT NULL,
    kind text NOT NULL,
    state text NOT NULL,
    ranks integer[] DEFAULT '{}'::integer[] NOT NULL,
    rank_count integer DEFAULT 0 NOT NULL,
    nodes text[] DEFAULT '{}'::text[] NOT NULL,
    collective text,
    sequence bigint,
    step bigint,
    cost_percent double precision,
    certainty double precision NOT NULL,
    evidence text NOT NULL,
    action text NOT NULL,
    began_at timestamp with time zone NOT NULL,
    found_at timestamp with time zone NOT NULL,
    confirmed_at timestamp with time zone,
    over_at timestamp with time zone,
    calls json DEFAULT '[]'::json NOT NULL,
    CONSTRAINT verdicts_action_check CHECK ((action = ANY (ARRAY['report'::text, 'evict'::text]))),
    CONSTRAINT verdicts_kind_check CHECK ((kind = ANY (ARRAY['crash'::text, 'hang'::text, 'hang_in_communication'::text, 'deadlock'::text, 'slow_compute'::text, 'slow_node'::text, 'slow_link'::text, 'slow_nic'::text, 'slow_loader'::text, 'slow_storage'::text, 'bad_values'::text, 'stack_outliers'::text]))),
    CONSTRAINT verdicts_state_check CHECK ((state = ANY (ARRAY['suspected'::text, 'confirmed'::text, 'over'::text])))
);
CREATE TABLE public.attempt_outputs (
    attempt_id bigint NOT NULL,
    command text DEFAULT ''::text NOT NULL,
    stdout_path text DEFAULT ''::text NOT NULL,
    stdout_offset bigint,
    stderr_path text DEFAULT ''::text NOT NULL,
    stderr_offset bigint,
    labelled boolean DEFAULT false NOT NULL,
    error text DEFAULT ''::text NOT NULL,
    error_cause text DEFAULT ''::text NOT NULL,
    error_rank integer,
    error_follows boolean DEFAULT false NOT NULL
);
ALTER TABLE public.attempts ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.attempts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE public.calibrations ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.calibrations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.checkpoints (
    id bigint NOT NULL,
    run_id bigint NOT NULL,
    attempt_id bigint NOT NULL,
    step bigint NOT NULL,
    path text NOT NULL,
    size_bytes bigint,
    duration_s double precision,
    recorded_at timestamp with time zone NOT NULL,
    stall_s double precision
);
ALTER TABLE public.checkpoints ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.checkpoints_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.coordinator (
    only_row boolean DEFAULT true NOT NULL,
    term bigint DEFAULT 0 NOT NULL,
    beats bigint DEFAULT 0 NOT NULL,
    lease_ms integer DEFAULT 0 NOT NULL,
    backend_pid integer,
    address text DEFAULT ''::text NOT NULL,
    CONSTRAINT coordinator_only_row_check CHECK (only_row)
);
CREATE TABLE public.drains (
    id bigint NOT NULL,
    node text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    began_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone
);
ALTER TABLE public.drains ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.drains_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.evaluations (
    run_id bigint NOT NULL,
    step bigint NOT NULL,
    attempt_id bigint NOT NULL,
    loss double precision,
    tokens bigint,
    duration_s double precision,
    recorded_at timestamp with time zone NOT NULL
);
CREATE TABLE public.events (
    id bigint NOT NULL,
    run_id bigint NOT NULL,
    attempt_id bigint,
    kind text NOT NULL,
    detail text DEFAULT ''::text NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    save jsonb
);
ALTER TABLE public.events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.fault_kinds (
    name text NOT NULL,
    is_loss boolean NOT NULL,
    is_process boolean NOT NULL,
    is_launcher boolean NOT NULL
);
ALTER TABLE public.faults ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.faults_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.followed_names (
    run_id bigint NOT NULL,
    name text NOT NULL,
    attempt_id bigint NOT NULL,
    stored bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.followed_values (
    attempt_id bigint NOT NULL,
    name text NOT NULL,
    is_of_attempt boolean NOT NULL,
    step bigint NOT NULL,
    value double precision NOT NULL,
    source smallint NOT NULL,
    stream integer NOT NULL,
    generation bigint NOT NULL,
    at bigint NOT NULL
);
ALTER TABLE public.node_checks ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.node_checks_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.notes (
    run_id bigint NOT NULL,
    number integer NOT NULL,
    note text NOT NULL,
    written_by text NOT NULL,
    written_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT notes_note_check CHECK (((note <> ''::text) AND (octet_length(note) <= 4096)))
);
CREATE TABLE public.prunings (
    run_id bigint NOT NULL,
    rolled_to bigint DEFAULT 0 NOT NULL,
    done_at timestamp with time zone
);
CREATE TABLE public.queue_waits (
    id bigint NOT NULL,
    run_id bigint NOT NULL,
    began_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone
);
ALTER TABLE public.queue_waits ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.queue_waits_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.rank_map (
    attempt_id bigint NOT NULL,
    rank integer NOT NULL,
    node text NOT NULL,
    local_rank integer NOT NULL,
    device integer
);
CREATE TABLE public.rank_samples (
    attempt_id bigint NOT NULL,
    sampled_at timestamp with time zone NOT NULL,
    late_s real[] NOT NULL,
    work real[] NOT NULL
);
CREATE TABLE public.run_node_checks (
    id bigint NOT NULL,
    run_id bigint NOT NULL,
    attempt_id bigint NOT NULL,
    node text NOT NULL,
    healthy boolean NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    checks json DEFAULT '[]'::json NOT NULL,
    checked_at timestamp with time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.run_node_checks ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.run_node_checks_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.run_times (
    run_id bigint NOT NULL,
    held_s numeric,
    effective_s numeric,
    detect_s numeric,
    decide_s numeric,
    start_s numeric,
    load_s numeric,
    repeated_s numeric,
    checkpoint_s numeric,
    idle_s numeric,
    other_s numeric,
    is_recorded boolean
);
ALTER TABLE public.runs ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.runs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.schema_version (
    version integer NOT NULL,
    file text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.sources (
    attempt_id bigint NOT NULL,
    source text NOT NULL,
    last_seq bigint DEFAULT 0 NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);
CREATE TABLE public.stack_gatherings (
    attempt_id bigint NOT NULL,
    stacks_id bigint NOT NULL,
    asked_at timestamp with time zone DEFAULT now() NOT NULL,
    nodes_asked integer NOT NULL,
    size_bytes bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.stacks (
    attempt_id bigint NOT NULL,
    stacks_id bigint NOT NULL,
    node text NOT NULL,
    rank integer NOT NULL,
    entry json NOT NULL
);
CREATE TABLE public.steps_superseded (
    run_id bigint NOT NULL,
    step bigint NOT NULL,
    attempt_id bigint NOT NULL,
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
    recorded_at timestamp with time zone NOT NULL,
    superseded_at timestamp with time zone DEFAULT now() NOT NULL,
    span_steps bigint DEFAULT 1 NOT NULL,
    loss_tokens bigint,
    global_batch_size bigint
);
CREATE TABLE public.suspensions (
    id bigint NOT NULL,
    run_id bigint NOT NULL,
    began_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone
);
ALTER TABLE public.suspensions ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.suspensions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.tags (
    run_id bigint NOT NULL,
    tag text NOT NULL COLLATE pg_catalog."C",
    set_by text NOT NULL,
    set_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT tags_tag_check CHECK ((tag ~ '^[A-Za-z0-9][A-Za-z0-9._:/=+-]{0,63}$'::text))
);
ALTER TABLE public.verdicts ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.verdicts_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY public.attempt_outputs
    ADD CONSTRAINT attempt_outputs_pkey PRIMARY KEY (attempt_id);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT attempts_run_id_number_key UNIQUE (run_id, number);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT attempts_uuid_key UNIQUE (uuid);
ALTER TABLE ONLY public.calibrations
    ADD CONSTRAINT calibrations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT checkpoints_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.coordinator
    ADD CONSTRAINT coordinator_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY public.drains
    ADD CONSTRAINT drains_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.evaluations
    ADD CONSTRAINT evaluations_pkey PRIMARY KEY (run_id, step);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.fault_kinds
    ADD CONSTRAINT fault_kinds_name_is_loss_key UNIQUE (name, is_loss);
ALTER TABLE ONLY public.fault_kinds
    ADD CONSTRAINT fault_kinds_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.faults
    ADD CONSTRAINT faults_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.followed_names
    ADD CONSTRAINT followed_names_pkey PRIMARY KEY (run_id, name);
ALTER TABLE ONLY public.followed_values
    ADD CONSTRAINT followed_values_pkey PRIMARY KEY (attempt_id, name, is_of_attempt, step);
ALTER TABLE ONLY public.node_checks
    ADD CONSTRAINT node_checks_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.notes
    ADD CONSTRAINT notes_pkey PRIMARY KEY (run_id, number);
ALTER TABLE ONLY public.prunings
    ADD CONSTRAINT prunings_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.queue_waits
    ADD CONSTRAINT queue_waits_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.rank_map
    ADD CONSTRAINT rank_map_pkey PRIMARY KEY (attempt_id, rank);
ALTER TABLE ONLY public.rank_samples
    ADD CONSTRAINT rank_samples_pkey PRIMARY KEY (attempt_id, sampled_at);
ALTER TABLE ONLY public.run_node_checks
    ADD CONSTRAINT run_node_checks_attempt_id_node_key UNIQUE (attempt_id, node);
ALTER TABLE ONLY public.run_node_checks
    ADD CONSTRAINT run_node_checks_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.run_times
    ADD CONSTRAINT run_times_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.schema_version
    ADD CONSTRAINT schema_version_pkey PRIMARY KEY (version);
ALTER TABLE ONLY public.sources
    ADD CONSTRAINT sources_pkey PRIMARY KEY (attempt_id, source);
ALTER TABLE ONLY public.stack_gatherings
    ADD CONSTRAINT stack_gatherings_pkey PRIMARY KEY (attempt_id, stacks_id);
ALTER TABLE ONLY public.stacks
    ADD CONSTRAINT stacks_pkey PRIMARY KEY (attempt_id, stacks_id, rank);
ALTER TABLE ONLY public.steps
    ADD CONSTRAINT steps_pkey PRIMARY KEY (run_id, step);
ALTER TABLE ONLY public.suspensions
    ADD CONSTRAINT suspensions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tags
    ADD CONSTRAINT tags_pkey PRIMARY KEY (run_id, tag);
ALTER TABLE ONLY public.verdicts
    ADD CONSTRAINT verdicts_attempt_id_watcher_number_key UNIQUE (attempt_id, watcher, number);
ALTER TABLE ONLY public.verdicts
    ADD CONSTRAINT verdicts_pkey PRIMARY KEY (id);
CREATE INDEX calibrations_by_type ON public.calibrations USING btree (node_type, uid, id DESC);
CREATE INDEX calibrations_by_user ON public.calibrations USING btree (uid, id DESC);
CREATE INDEX checkpoints_attempt_id_idx ON public.checkpoints USING btree (attempt_id);
CREATE INDEX checkpoints_run_id_recorded_at_idx ON public.checkpoints USING btree (run_id, recorded_at);
CREATE INDEX checkpoints_run_id_step_idx ON public.checkpoints USING btree (run_id, step);
CREATE INDEX drains_node_id_idx ON public.drains USING btree (node, id);
CREATE UNIQUE INDEX drains_node_idx ON public.drains USING btree (node) WHERE (ended_at IS NULL);
CREATE INDEX evaluations_attempt_id_idx ON public.evaluations USING btree (attempt_id);
CREATE INDEX events_attempt_id_idx ON public.events USING btree (attempt_id);
CREATE UNIQUE INDEX events_once ON public.events USING btree (run_id, kind, recorded_at, md5(detail));
CREATE INDEX events_run_id_id_idx ON public.events USING btree (run_id, id);
CREATE INDEX events_run_id_id_idx1 ON public.events USING btree (run_id, id) WHERE (save IS NOT NULL);
CREATE INDEX faults_attempt_id_idx ON public.faults USING btree (attempt_id);
CREATE INDEX faults_attempt_id_idx1 ON public.faults USING btree (attempt_id) WHERE (proof ? 'evicted'::text);
CREATE INDEX faults_detected_at_id_idx ON public.faults USING btree (detected_at, id);
CREATE INDEX faults_detected_at_idx ON public.faults USING btree (detected_at) WHERE ((kind = 'node_lost'::text) AND (proof ? 'seen'::text));
CREATE INDEX faults_detected_at_idx1 ON public.faults USING btree (detected_at) WHERE (proof ? 'evicted'::text);
CREATE UNIQUE INDEX faults_loss_once ON public.faults USING btree (attempt_id, kind, COALESCE(node, ''::text), COALESCE(rank, '-1'::integer)) WHERE is_loss;
CREATE INDEX faults_node_detected_at_idx ON public.faults USING btree (node, detected_at);
CREATE UNIQUE INDEX faults_one_cause ON public.faults USING btree (attempt_id) WHERE cause;
CREATE INDEX faults_run_id_id_idx ON public.faults USING btree (run_id, id);
CREATE INDEX followed_names_attempt_id_idx ON public.followed_names USING btree (attempt_id);
CREATE INDEX node_checks_node_checked_at_idx ON public.node_checks USING btree (node, checked_at);
CREATE INDEX node_checks_node_checked_at_idx1 ON public.node_checks USING btree (node, checked_at) WHERE (failed <> '{}'::text[]);
CREATE INDEX queue_waits_run_id_id_idx ON public.queue_waits USING btree (run_id, id);
CREATE INDEX run_node_checks_checked_at_idx ON public.run_node_checks USING btree (checked_at) WHERE (NOT healthy);
CREATE INDEX run_node_checks_node_checked_at_idx ON public.run_node_checks USING btree (node, checked_at) WHERE (NOT healthy);
CREATE INDEX run_node_checks_run_id_node_idx ON public.run_node_checks USING btree (run_id, node);
CREATE INDEX runs_alias_id_idx ON public.runs USING btree (alias, id) WHERE (alias IS NOT NULL);
CREATE INDEX runs_ended_at_idx ON public.runs USING btree (ended_at) WHERE ((job_over_restart_count IS NULL) OR (job_over_restart_count < restart_count));
CREATE INDEX runs_job_id_id_idx ON public.runs USING btree (job_id, id);
CREATE INDEX runs_name_id_idx ON public.runs USING btree (name, id);
CREATE INDEX runs_state_id_idx ON public.runs USING btree (state, id);
CREATE INDEX runs_uid_id_idx ON public.runs USING btree (uid, id);
CREATE INDEX runs_uid_idx ON public.runs USING btree (uid) WHERE ((NOT confirmed) AND (state = ANY (ARRAY['starting'::text, 'running'::text, 'restarting'::text])));
CREATE INDEX runs_uid_job_id_idx ON public.runs USING btree (uid, job_id) WHERE (state = ANY (ARRAY['starting'::text, 'running'::text, 'restarting'::text]));
CREATE INDEX runs_user_name_id_idx ON public.runs USING btree (user_name, id);
CREATE INDEX stacks_attempt_id_stacks_id_node_idx ON public.stacks USING btree (attempt_id, stacks_id, node);
CREATE INDEX steps_attempt_id_step_idx ON public.steps USING btree (attempt_id, step);
CREATE INDEX steps_recorded_at_idx ON public.steps USING brin (recorded_at);
CREATE INDEX steps_run_id_recorded_at_idx ON public.steps USING btree (run_id, recorded_at);
CREATE INDEX steps_superseded_attempt_id_step_idx ON public.steps_superseded USING btree (attempt_id, step);
CREATE INDEX steps_superseded_run_id_recorded_at_idx ON public.steps_superseded USING btree (run_id, recorded_at);
CREATE INDEX steps_superseded_run_id_step_idx ON public.steps_superseded USING btree (run_id, step);
CREATE INDEX suspensions_run_id_id_idx ON public.suspensions USING btree (run_id, id);
CREATE INDEX tags_tag_run_id_idx ON public.tags USING btree (tag, run_id);
CREATE INDEX verdicts_found_at_id_idx ON public.verdicts USING btree (found_at, id);
CREATE INDEX verdicts_nodes_idx ON public.verdicts USING gin (nodes);
CREATE INDEX verdicts_run_id_id_idx ON public.verdicts USING btree (run_id, id);
CREATE TRIGGER attempts_end_verdicts AFTER UPDATE OF ended_at ON public.attempts FOR EACH ROW WHEN (((old.ended_at IS NULL) AND (new.ended_at IS NOT NULL))) EXECUTE FUNCTION public.wlb_attempt_has_ended();
CREATE TRIGGER attempts_reason_cut BEFORE INSERT OR UPDATE OF reason, told ON public.attempts FOR EACH ROW WHEN (((length(new.reason) > 4096) OR (length(new.told) > 4096))) EXECUTE FUNCTION public.wlb_attempt_reason_cut();
CREATE TRIGGER attempts_run_is_reached AFTER INSERT ON public.attempts FOR EACH ROW EXECUTE FUNCTION public.wlb_run_is_reached();
CREATE TRIGGER attempts_time_stale AFTER INSERT OR UPDATE OF state, world_size, resumed_step, decision, spares, held_nodes, created_at, started_at, reported_at, ended_at, checkpoint_seconds ON public.attempts FOR EACH ROW EXECUTE FUNCTION public.wlb_of_run_changed();
CREATE TRIGGER checkpoints_added AFTER INSERT ON public.checkpoints FOR EACH ROW EXECUTE FUNCTION public.wlb_checkpoint_added();
CREATE TRIGGER faults_added AFTER INSERT ON public.faults REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.wlb_faults_count();
CREATE TRIGGER faults_removed AFTER DELETE ON public.faults REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.wlb_faults_count();
CREATE TRIGGER faults_time_stale AFTER UPDATE OF cause, proof, detected_at ON public.faults FOR EACH ROW EXECUTE FUNCTION public.wlb_of_run_changed();
CREATE TRIGGER queue_waits_time_stale AFTER INSERT OR UPDATE ON public.queue_waits FOR EACH ROW EXECUTE FUNCTION public.wlb_of_run_changed();
CREATE CONSTRAINT TRIGGER run_times_keep AFTER INSERT OR UPDATE ON public.run_times DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN ((new.held_s IS NULL)) EXECUTE FUNCTION public.wlb_run_time_keep();
CREATE TRIGGER runs_queue_waits AFTER UPDATE OF requeued_at, restart_count ON public.runs FOR EACH ROW WHEN (((new.requeued_at IS DISTINCT FROM old.requeued_at) OR (new.restart_count > old.restart_count))) EXECUTE FUNCTION public.wlb_queue_wait_note();
CREATE TRIGGER runs_reason_cut BEFORE INSERT OR UPDATE OF reason ON public.runs FOR EACH ROW WHEN ((length(new.reason) > 4096)) EXECUTE FUNCTION public.wlb_run_reason_cut();
CREATE TRIGGER runs_settings_prevail BEFORE UPDATE OF policy, settings ON public.runs FOR EACH ROW WHEN ((new.settings ? 'on_fault'::text)) EXECUTE FUNCTION public.wlb_settings_prevail();
CREATE TRIGGER runs_time_stale AFTER UPDATE OF created_at, submitted_at, started_at, ended_at, steps, faults, is_followed ON public.runs FOR EACH ROW WHEN (((new.ended_at IS NOT NULL) OR (old.ended_at IS NOT NULL))) EXECUTE FUNCTION public.wlb_run_changed();
CREATE TRIGGER suspensions_time_stale AFTER INSERT OR UPDATE ON public.suspensions FOR EACH ROW EXECUTE FUNCTION public.wlb_of_run_changed();
CREATE TRIGGER verdicts_time_stale AFTER INSERT OR UPDATE OF began_at, confirmed_at ON public.verdicts FOR EACH ROW EXECUTE FUNCTION public.wlb_of_run_changed();
ALTER TABLE ONLY public.attempt_outputs
    ADD CONSTRAINT attempt_outputs_attempt_id_fkey FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT attempts_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT checkpoints_attempt_id_fkey FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT checkpoints_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.evaluations
    ADD CONSTRAINT evaluations_attempt_id_fkey FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.evaluations
    ADD CONSTRAINT evaluations_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_attempt_id_fkey FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.faults
    ADD CONSTRAINT faults_attempt_id_fkey FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.faults
    ADD CONSTRAINT faults_kind_fkey FOREIGN KEY (kind, is_loss) REFERENCES public.fault_kinds(name, is_loss);
ALTER TABLE ONLY public.faults
    ADD CONSTRAINT faults_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.followed_names
    ADD CONSTRAINT followed_names_attempt_id_fkey FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.followed_names
    ADD CONSTRAINT followed_names_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.followed_values
    ADD CONSTRAINT followed_values_attempt_id_fkey FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.notes
    ADD CONSTRAINT notes_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.prunings
    ADD CONSTRAINT prunings_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.queue_waits
    ADD CONSTRAINT queue_waits_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.rank_map
    ADD CONSTRAINT rank_map_attempt_id_fkey FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.rank_samples
    ADD CONSTRAINT rank_samples_attempt_id_fkey FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.run_node_checks
    ADD CONSTRAINT run_node_checks_attempt_id_fkey FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.run_node_checks
    ADD CONSTRAINT run_node_checks_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.run_times
    ADD CONSTRAINT run_times_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sources
    ADD CONSTRAINT sources_attempt_id_fkey FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.stack_gatherings
    ADD CONSTRAINT stack_gatherings_attempt_id_fkey FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.stacks
    ADD CONSTRAINT stacks_attempt_id_stacks_id_fkey FOREIGN KEY (attempt_id, stacks_id) REFERENCES public.stack_gatherings(attempt_id, stacks_id) ON DELETE CASCADE;
ALTER TABLE ONLY public.steps
    ADD CONSTRAINT steps_attempt_id_fkey FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.steps
    ADD CONSTRAINT steps_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.steps_superseded
    ADD CONSTRAINT steps_superseded_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.suspensions
    ADD CONSTRAINT suspensions_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.tags
    ADD CONSTRAINT tags_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.verdicts
    ADD CONSTRAINT verdicts_attempt_id_fkey FOREIGN KEY (attempt_id) REFERENCES public.attempts(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.verdicts
    ADD CONSTRAINT verdicts_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE public.attempt_outputs ENABLE ROW LEVEL SECURITY;
