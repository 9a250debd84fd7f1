-- Tags and notes of runs, for SQL and Grafana.

create view run_tags as
select r.name as run, r.id as run_id, t.tag, t.set_by, t.set_at from tags t join runs r on r.id = t.run_id;
comment on view run_tags is 'Tags of runs';

create view run_notes as
select r.name as run, r.id as run_id, n.number, n.note, n.written_by, n.written_at from notes n join runs r on r.id = n.run_id;
comment on view run_notes is 'Notes on runs';
