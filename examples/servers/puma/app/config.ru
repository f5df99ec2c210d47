# A page that answers at once, and /slow after ANSWER_SECONDS.
run(lambda do |environment|
  sleep(ENV.fetch('ANSWER_SECONDS').to_f) if environment['PATH_INFO'] == '/slow'
  [200, { 'content-type' => 'text/plain' }, ["done\n"]]
end)
