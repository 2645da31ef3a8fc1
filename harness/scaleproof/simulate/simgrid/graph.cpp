// Runs a graph of computations and messages in SimGrid's fluid model. Build: g++ -std=c++17 -O2 graph.cpp -o graph -lsimgrid
// Standard input, a line each: `hosts N`; `link RATE LATENCY` in bytes/s and s; `route SOURCE DESTINATION LINK...`; then
// `compute HOST SECONDS` and `message SOURCE DESTINATION BYTES`; then `edge BEFORE AFTER`. Links are numbered from 0,
// computations and messages together from 0. Standard output: `wall S` of the run, then start and end of each in s.
// With the argument `actors` each host is an actor that goes through its part in the order of the input, which is faster and
// the same only where that order is no further wait; then standard output has `wall S` and `end S` alone.
#include <simgrid/s4u.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace sg = simgrid::s4u;

struct Graph {
  sg::NetZone* zone = sg::create_full_zone("network");
  std::vector<sg::Host*> hosts;
  std::vector<sg::Link*> links;
  std::vector<sg::ActivityPtr> activities;
  std::vector<std::pair<int, int>> places;
  std::vector<double> amounts;
  std::vector<std::vector<size_t>> earlier;

  void read_platform(const std::string& what, std::istringstream& words) {
    if (what == "hosts") {
      int count;
      words >> count;
      for (int i = 0; i < count; i++) hosts.push_back(zone->create_host("h" + std::to_string(i), 1.0));
    } else if (what == "link") {
      double rate, latency;
      words >> rate >> latency;
      links.push_back(zone->create_link("l" + std::to_string(links.size()), rate)->set_latency(latency)->seal());
    } else if (what == "route") {
      int source, destination, link;
      words >> source >> destination;
      std::vector<sg::LinkInRoute> route;
      while (words >> link) route.emplace_back(links[link]);
      zone->add_route(hosts[source]->get_netpoint(), hosts[destination]->get_netpoint(), nullptr, nullptr, route, false);
    }
  }

  void read_activity(const std::string& what, std::istringstream& words) {
    if (what == "compute") {
      int host;
      double seconds;
      words >> host >> seconds;
      auto exec = sg::Exec::init();
      exec->set_flops_amount(seconds);
      activities.push_back(exec);
      places.emplace_back(host, host);
      amounts.push_back(seconds);
    } else if (what == "message") {
      int source, destination;
      double nbytes;
      words >> source >> destination >> nbytes;
      auto comm = sg::Comm::sendto_init();
      comm->set_payload_size(nbytes);
      activities.push_back(comm);
      places.emplace_back(source, destination);
      amounts.push_back(nbytes);
    } else if (what == "edge") {
      size_t before, after;
      words >> before >> after;
      earlier.resize(activities.size());
      earlier[after].push_back(before);
      if (auto* exec = dynamic_cast<sg::Exec*>(activities[before].get())) exec->add_successor(activities[after]);
      else dynamic_cast<sg::Comm*>(activities[before].get())->add_successor(activities[after]);
    }
  }

  // An activity that has all it needs starts when it gets its hosts, so its dependencies are there before.
  void place(size_t number) {
    auto* from = hosts[places[number].first];
    auto* activity = activities[number].get();
    if (auto* exec = dynamic_cast<sg::Exec*>(activity)) exec->set_host(from);
    else dynamic_cast<sg::Comm*>(activity)->set_source(from)->set_destination(hosts[places[number].second]);
    if (activity->get_state() == sg::Activity::State::INITED) activity->vetoable_start();
  }

  // What a host has started of an activity: side 0 of a computation or of a message that it sends, else side 1.
  std::vector<std::array<sg::ActivityPtr, 2>> started;
  std::vector<sg::Mailbox*> boxes;

  sg::ActivityPtr& part_of(size_t number, int host) { return started[number][places[number].first == host ? 0 : 1]; }

  void act(int host, const std::vector<size_t>& mine) {
    static int token;
    static int* got;
    for (size_t number : mine) {
      for (size_t before : earlier[number])
        if (auto& handle = part_of(before, host)) handle->wait();
      auto [source, destination] = places[number];
      auto& handle = part_of(number, host);
      if (source == destination) handle = sg::this_actor::exec_async(amounts[number]);
      else if (host == source) handle = boxes[number]->put_async(&token, amounts[number]);
      else handle = boxes[number]->get_async<int>(&got);
    }
    for (size_t number : mine) part_of(number, host)->wait();
  }

  void start_actors() {
    std::vector<std::vector<size_t>> parts(hosts.size());
    earlier.resize(places.size());
    started.resize(places.size());
    for (size_t number = 0; number < places.size(); number++) {
      auto [source, destination] = places[number];
      boxes.push_back(sg::Mailbox::by_name(std::to_string(source) + "-" + std::to_string(destination)));
      parts[source].push_back(number);
      if (source != destination) parts[destination].push_back(number);
    }
    for (size_t host = 0; host < hosts.size(); host++)
      sg::Actor::create("h" + std::to_string(host), hosts[host], [this, host, part = parts[host]] { act(host, part); });
  }
};

int main(int argc, char** argv) {
  sg::Engine engine(&argc, argv);
  Graph graph;
  bool sealed = false;
  for (std::string line, what; std::getline(std::cin, line);) {
    std::istringstream words(line);
    words >> what;
    if (what == "hosts" || what == "link" || what == "route") {
      graph.read_platform(what, words);
      continue;
    }
    if (!sealed) graph.zone->seal();
    sealed = true;
    graph.read_activity(what, words);
  }
  const bool actors = argc > 1 && std::string(argv[1]) == "actors";
  if (actors) graph.start_actors();
  else for (size_t number = 0; number < graph.activities.size(); number++) graph.place(number);
  auto began = std::chrono::steady_clock::now();
  engine.run();
  std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began;
  std::printf("wall %.9f\n", wall.count());
  if (actors) return std::printf("end %.17g\n", sg::Engine::get_clock()), 0;
  for (auto& activity : graph.activities)
    std::printf("%.17g %.17g\n", activity->get_start_time(), activity->get_finish_time());
}
