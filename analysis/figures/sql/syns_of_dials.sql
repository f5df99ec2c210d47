-- How many SYNs the dials of some instances sent that ended in one of these ways, by how long each lasted: a dial sends
-- one at each of the times `$due_us` that it lasts for.
SELECT coalesce(sum(len(list_filter($due_us, lambda due: due < duration_us))), 0)::BIGINT AS syns
  FROM dials WHERE list_contains($instances, instance) AND list_contains($kinds, failure_of(error, error_kind));
